"""What training computes of a frozen model: one pass over the text, and pseudo rows of some anchors on top of it.

The rows, their mask and their positions are those of `ladechat.model.runners.pseudo_rows`, where an anchor is a slot
that carries rows:

    chunk tokens   0 1 2 3 4 5 …     read once, without gradients; each layer's keys and values are kept
    anchor 2       row 0 at position 3, row 1 at position 4: see tokens 0 1 2, the anchor's rows before, themselves

So a map is trained on exactly the passes in which it will be used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from ladechat.decoder.hidden import TransferMaps
from ladechat.model.runners.layer_loop import LayerLoop, Masks
from ladechat.model.runners.pseudo_rows import Rows, first_rows, transferred
from ladechat.model.runners.slots import Slots
from ladechat.train.chunks import Batch


class KeptLayer(CacheLayerMixin):
    """One layer of a `Kept`."""

    is_sliding = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: what comes first is kept as it is."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Keep the (B, heads, T, head_dim) states of the first pass. Those of later ones stand behind it, unkept."""
        if self.keys is None or self.values is None:
            self.keys, self.values = key_states, value_states
            return key_states, value_states
        return torch.cat([self.keys, key_states], 2), torch.cat([self.values, value_states], 2)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Total length of keys for a pass of so many rows, and the offset of the first."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """How many tokens are kept."""
        return 0 if self.keys is None else int(self.keys.shape[2])

    def get_max_length(self) -> int:
        """No maximum."""
        return -1


class Kept(Cache):
    """Keys and values of a text, for passes on top of it that leave it as it is."""

    def __init__(self, depth: int) -> None:
        super().__init__(layers=[KeptLayer() for _ in range(depth)])  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Base:
    """A frozen model, as training uses it.

    Attributes:
        loop: its layers.
        windows: each kind of layer, with how many positions it looks back; None means all.
        adds_masks: whether its attention adds its mask to the scores.
        dtype: what it computes in.
        device: where it is.
    """

    loop: LayerLoop
    windows: dict[str, int | None]
    adds_masks: bool
    dtype: torch.dtype
    device: torch.device

    def mask(self, visible: NDArray[np.bool_], rows: NDArray[np.int64], keys: NDArray[np.int64]) -> Masks:
        """The mask of a pass, or one of each kind of layer.

        Args:
            visible: (B, rows, keys).
            rows: (B, rows) the positions of the rows.
            keys: (B, keys) the positions of what they see.
        """
        distance = rows[:, :, None] - keys[:, None, :]
        masks = {
            kind: self._as_tensor(visible & (distance < window) if window else visible)
            for kind, window in self.windows.items()
        }
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _as_tensor(self, visible: NDArray[np.bool_]) -> Tensor:
        mask = torch.from_numpy(visible)[:, None].to(self.device)
        if not self.adds_masks:
            return mask
        lowest = torch.finfo(self.dtype).min
        return torch.zeros_like(mask, dtype=self.dtype).masked_fill_(~mask, lowest)


@dataclass(frozen=True, slots=True)
class Context:
    """What is kept of the pass over a batch of chunks.

    Attributes:
        inputs: by layer, the hidden states (B, T, d) that it got: those of the layers asked for.
        cache: keys and values from the lowest of these layers up.
        final: (B, T, d) as the output layer reads them.
        after: by layer, the hidden states that it gave, where all were asked for.
    """

    inputs: dict[int, Tensor]
    cache: Kept
    final: Tensor
    after: dict[int, Tensor]


@torch.no_grad()
def read(base: Base, tokens: Tensor, layers: Sequence[int], keep_all: bool = False) -> Context:
    """Read chunks.

    Args:
        base: the model.
        tokens: (B, T), filled up at the right: no row sees what stands behind it.
        layers: whose inputs are wanted; none for none.
        keep_all: keep what each layer gives, too.
    """
    loop, (count, length) = base.loop, tokens.shape
    positions = np.tile(np.arange(length), (count, 1))
    mask = base.mask(np.tile(np.tri(length, dtype=np.bool_), (count, 1, 1)), positions, positions)
    places = torch.from_numpy(positions).to(base.device)
    lowest = min(layers, default=loop.depth)
    hidden = loop.embed(tokens)
    angles = loop.angles(hidden, places)
    inputs, after, cache = {}, {}, Kept(loop.depth)
    for layer in range(loop.depth):
        if layer in layers:
            inputs[layer] = hidden
        hidden = loop.through(layer, hidden, mask, places, angles, cache if layer >= lowest else None)
        if keep_all:
            after[layer] = hidden
    return Context(inputs, cache, loop.final(hidden), after)


@dataclass(frozen=True, slots=True)
class PseudoPass:
    """Pseudo rows after they went up.

    Attributes:
        final: (k, B·A, d) as the output layer reads them: the rows of each step, chunk by chunk.
        after: by layer, (rows, B·A, d) after it, of the steps that had entered, where all were asked for.
    """

    final: Tensor
    after: dict[int, Tensor]


def pseudo_pass(
    base: Base, context: Context, batch: Batch, maps: TransferMaps, sight: bool = True, keep_all: bool = False
) -> PseudoPass:
    """Let the pseudo rows of the anchors enter and go up; gradients lead to the maps.

    Args:
        base: the model.
        context: what `read` gave of the batch, with the inputs of the maps' layers.
        batch: the chunks and anchors.
        maps: what makes the rows.
        sight: whether a row sees the earlier rows of its anchor.
        keep_all: keep what each layer gives.
    """
    loop, (count, anchors) = base.loop, batch.anchors.shape
    mask, places = _layout(base, batch, len(maps.layers), sight)
    chosen = batch.anchors[..., None].expand(-1, -1, loop.width)
    hidden = context.final.new_empty(count, 0, loop.width)
    after: dict[int, Tensor] = {}
    total = places.shape[1]
    for layer in range(maps.layers[0], loop.depth):
        entered = [step for step, at in enumerate(maps.layers) if at == layer]
        if entered:
            of_anchors = context.inputs[layer].gather(1, chosen).flatten(0, 1)
            rows = transferred(maps, entered, of_anchors).view(len(entered), count, anchors, -1)
            hidden = torch.cat([hidden, rows.transpose(0, 1).flatten(1, 2)], 1)
            there = hidden.shape[1]
            own_mask, own_places = first_rows(mask, there, total), places[:, :there]
            angles = loop.angles(hidden, own_places)
        hidden = loop.through(layer, hidden, own_mask, own_places, angles, context.cache)
        if keep_all:
            after[layer] = _by_step(hidden, anchors)
    return PseudoPass(_by_step(loop.final(hidden), anchors), after)


def _by_step(hidden: Tensor, anchors: int) -> Tensor:
    """(B, steps · A, d) to (steps, B·A, d)."""
    count, rows, width = hidden.shape
    return hidden.view(count, rows // anchors, anchors, width).transpose(0, 1).flatten(1, 2)


def _layout(base: Base, batch: Batch, ahead: int, sight: bool) -> tuple[Masks, Tensor]:
    """The mask (B, 1, k·A, T + k·A) and the positions (B, k·A) of the pseudo rows of a batch."""
    length = batch.tokens.shape[1]
    causal = Slots.causal([0] * length)
    laid_out = [Rows.of(causal, anchors, ahead).slots for anchors in batch.anchors.tolist()]
    visible = np.stack([slots.mask[length:] for slots in laid_out])
    if not sight:
        visible[:, :, length:] &= np.eye(visible.shape[1], dtype=np.bool_)
    positions = np.stack([slots.positions for slots in laid_out])
    rows = positions[:, length:]
    return base.mask(visible, rows, positions), torch.from_numpy(rows).to(base.device)
