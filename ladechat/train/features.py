"""The passes of a frozen model in training: one over the text, and pseudo rows of some anchors on top of it.

The rows, their mask and their positions are those of `ladechat.model.runners.layer_loop`, where an anchor is a slot
that carries rows:

    chunk tokens   0 1 2 3 4 5 …     read once, without gradients; each layer's keys and values are cached
    anchor 2       row 0 at position 3, row 1 at position 4: see tokens 0 1 2, the anchor's earlier rows, themselves

So a map is trained on exactly the passes in which it will be used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from ladechat.decoder.hidden import TransferMaps
from ladechat.model.runners.layer_loop import LayerLoop, Masks, rows_of, transferred, with_pseudo_rows
from ladechat.model.runners.slots import Slots
from ladechat.train.chunks import Batch


@dataclass(frozen=True, slots=True)
class Base:
    """A frozen model, as training uses it."""

    loop: LayerLoop  # the model's layers
    windows: dict[str, int | None]  # for each kind of layer, the positions of its sliding window; None: all
    adds_masks: bool  # whether its attention adds the mask to the scores
    dtype: torch.dtype  # the type that it computes in
    device: torch.device  # the device that it is on

    def mask(self, visible: NDArray[np.bool_], rows: NDArray[np.int64], keys: NDArray[np.int64]) -> Masks:
        """Return the mask of a pass, or one for each kind of layer.

        Args:
            visible: (B, rows, keys).
            rows: (B, rows), the positions of the rows.
            keys: (B, keys), the positions of the keys.
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
    """The stored states of the pass over a batch of chunks, for one `pseudo_pass`, which appends to the cache."""

    inputs: dict[int, Tensor]  # by layer, its input hidden states (B, T, d), for the layers requested
    cache: DynamicCache  # keys and values from the lowest of these layers upwards
    final: Tensor  # (B, T, d), the input of the output layer
    after: dict[int, Tensor]  # by layer, its output hidden states, if all were requested


@torch.no_grad()
def read(base: Base, tokens: Tensor, layers: Sequence[int], keep_all: bool = False) -> Context:
    """Run the model over chunks, (B, T) tokens padded at the right: no row sees what comes after it. Store the inputs
    of some layers, and with `keep_all` the output of each layer, too.
    """
    loop, (count, length) = base.loop, tokens.shape
    positions = np.tile(np.arange(length), (count, 1))
    mask = base.mask(np.tile(np.tri(length, dtype=np.bool_), (count, 1, 1)), positions, positions)
    places = torch.from_numpy(positions).to(base.device)
    lowest = min(layers, default=loop.depth)
    hidden = loop.embed(tokens)
    angles = loop.angles(hidden, places)
    inputs, after, cache = {}, {}, DynamicCache()
    for layer in range(loop.depth):
        if layer in layers:
            inputs[layer] = hidden
        hidden = loop.through(layer, hidden, mask, places, angles, cache if layer >= lowest else None)
        if keep_all:
            after[layer] = hidden
    return Context(inputs, cache, loop.final(hidden), after)


@dataclass(frozen=True, slots=True)
class PseudoPass:
    """The hidden states of pseudo rows."""

    final: Tensor  # (k, B·A, d), the input of the output layer: the rows of each step, chunk by chunk
    after: dict[int, Tensor]  # by layer, its outputs (rows, B·A, d) of the steps that had entered, if requested


def pseudo_pass(
    base: Base, context: Context, batch: Batch, maps: TransferMaps, sight: bool = True, keep_all: bool = False
) -> PseudoPass:
    """Run the pseudo rows of the anchors through the upper layers; gradients flow to the maps. `context` is the result
    of `read` for the batch, with the inputs of the maps' layers. With `sight` a row sees the earlier rows of its
    anchor.
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
            own_mask, own_places = rows_of(mask, 0, there, total), places[:, :there]
            angles = loop.angles(hidden, own_places)
        hidden = loop.through(layer, hidden, own_mask, own_places, angles, context.cache)
        if keep_all:
            after[layer] = _by_step(hidden, anchors)
    return PseudoPass(_by_step(loop.final(hidden), anchors), after)


def _by_step(hidden: Tensor, anchors: int) -> Tensor:
    """Reshape (B, steps · A, d) to (steps, B·A, d)."""
    count, rows, width = hidden.shape
    return hidden.view(count, rows // anchors, anchors, width).transpose(0, 1).flatten(1, 2)


def _layout(base: Base, batch: Batch, ahead: int, sight: bool) -> tuple[Masks, Tensor]:
    """Return the mask (B, 1, k·A, T + k·A) and the positions (B, k·A) of the pseudo rows of a batch."""
    length = batch.tokens.shape[1]
    causal = Slots.causal([0] * length)
    laid_out = [with_pseudo_rows(causal, anchors, ahead) for anchors in batch.anchors.tolist()]
    visible = np.stack([slots.mask[length:] for slots in laid_out])
    if not sight:
        visible[:, :, length:] &= np.eye(visible.shape[1], dtype=np.bool_)
    positions = np.stack([slots.positions for slots in laid_out])
    rows = positions[:, length:]
    return base.mask(visible, rows, positions), torch.from_numpy(rows).to(base.device)
