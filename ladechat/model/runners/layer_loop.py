"""A loop over a model's own decoder layers, in which hidden states are read, rows added, and layers skipped.

The model is not patched: its layers are called as its `forward` calls them. Whether that gives the same logits
is checked when a model is loaded (`ladechat.model.loading.self_check`).
"""

import inspect
import math
from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from ladechat.decoder.hidden import Hidden, TransferMaps, Want
from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.model.runners.kv_cache import SlabCache, cache_argument
from ladechat.model.runners.slots import Slots

Masks = torch.Tensor | dict[str, torch.Tensor]

FUSED = "ladechat_layers"
"""The attribute of a decoder for a function that computes its pass at once, `cpu_layers.FusedModel`."""

FIRST_ANGLES = 512
"""The positions whose rotary angles are computed first; then twice as many as needed."""


class NoLayerLoop(ValueError):
    """A model whose layers cannot be called one by one; the message is the reason, and follows the model's name."""


class LayerLoop:
    """The parts of a decoder-only model: embedding, layers, final norm, output layer.

    Args:
        model: in evaluation mode.
        windows: for each kind of layer its sliding window in positions; None: full attention.

    Attributes:
        windows: as given.
        kinds: the kind of each layer's attention; None in models with one kind.
        depth: the number of decoder layers.
        at_once: a function that computes a pass faster than the parts one by one; None where there is none.
        width: d, the size of hidden states.

    Raises:
        NoLayerLoop: the model does not have these parts under their usual names.
    """

    def __init__(self, model: PreTrainedModel, windows: dict[str, int | None]) -> None:
        self.windows = windows
        config: Any = model.config.get_text_config(decoder=True)
        decoder: Any = model.get_decoder()
        self._head: Any = model.get_output_embeddings()
        missing = [name for name in ("embed_tokens", "layers", "norm", "rotary_emb") if not hasattr(decoder, name)]
        if missing or self._head is None:
            raise NoLayerLoop(f"has no part called {missing[0] if missing else 'lm_head'}")
        self._decoder, self._device = decoder, model.device
        self.at_once: Any = getattr(decoder, FUSED, None)
        self._all_angles: dict[str | None, Any] = {}
        self._angles_known = 0
        self.kinds: list[str | None] = list(getattr(config, "layer_types", None) or [None] * len(decoder.layers))
        self.depth, self.width = len(decoder.layers), int(config.hidden_size)
        if len(self.kinds) != self.depth:
            raise NoLayerLoop("has other layers than its config.json says")
        self._angles_by_kind = "layer_type" in inspect.signature(decoder.rotary_emb.forward).parameters
        self._cache_argument = cache_argument(decoder.layers[0].forward)
        self._scale = float(getattr(config, "embedding_multiplier", None) or 1.0)
        self._logit_scale = float(getattr(config, "logit_scale", None) or 1.0)
        self._logit_divisor = float(getattr(config, "logits_scaling", None) or 1.0)
        self._cap: float | None = getattr(config, "final_logit_softcapping", None)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the hidden states (1, T, d) of tokens (1, T) before the first layer."""
        embedded: torch.Tensor = self._decoder.embed_tokens(tokens)
        return embedded if self._scale == 1.0 else embedded * self._scale

    def angles(self, hidden: torch.Tensor, positions: torch.Tensor) -> dict[str | None, Any]:
        """Return the rotary angles at positions (1, T) for each kind of layer; `hidden` gives type and device."""
        rotary = self._decoder.rotary_emb
        if self._angles_by_kind:
            return {kind: rotary(hidden, positions, kind) for kind in set(self.kinds)}
        return dict.fromkeys(self.kinds, rotary(hidden, positions))

    def through(
        self,
        layer: int,
        hidden: torch.Tensor,
        mask: Masks | None,
        positions: torch.Tensor,
        angles: dict[str | None, Any],
        cache: Cache | None,
    ) -> torch.Tensor:
        """Return hidden states (1, T, d) after one decoder layer; its keys and values go into the cache.

        The mask is (1, 1, T, cached + T), or one for each kind of layer; the positions are (1, T).
        """
        kind = self.kinds[layer]
        output = self._decoder.layers[layer](
            hidden,
            attention_mask=self._own(mask, kind),
            position_ids=positions,
            **{self._cache_argument: cache},
            use_cache=cache is not None,
            position_embeddings=angles[kind],
        )
        after: torch.Tensor = output[0] if isinstance(output, tuple) else output
        return after

    def whole_pass(self, slots: Slots, mask: Masks, cache: SlabCache, read: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Run a pass of T slots after the cached tokens; see `through`.

        Returns:
            The logits (read, vocabulary) of the last `read` slots, and the (T, d) final hidden states of all.
        """
        if self.at_once is not None:
            every = self._angles_to(cache.length + int(slots.positions.max()))
            given = {kind: (self._own(mask, kind), angles) for kind, angles in every.items()}
            found = self.at_once(slots, self.kinds, given, cache, read)
            if found is not None:
                return self._scaled(found[0]), found[1]
        hidden = self.embed(torch.tensor([slots.tokens], device=self._device))
        positions = torch.from_numpy(slots.positions + cache.length)[None].to(self._device)
        angles = self.angles(hidden, positions)
        for layer in range(self.depth):
            hidden = self.through(layer, hidden, mask, positions, angles, cache)
        final = self.final(hidden)[0]
        return self.read(final[-read:]), final

    def _angles_to(self, highest: int) -> dict[str | None, Any]:
        """Return the rotary angles of all positions up to this one."""
        if highest >= self._angles_known:
            self._angles_known = max(FIRST_ANGLES, 2 * highest)
            every = torch.arange(self._angles_known, device=self._device)[None]
            self._all_angles = self.angles(torch.empty(0, device=self._device), every)
        return self._all_angles

    def _own(self, mask: Masks | None, kind: str | None) -> torch.Tensor | None:
        return mask[kind or ""] if isinstance(mask, dict) else mask

    def final(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the final norm of hidden states (…, d) after the last layer: the input of the output layer."""
        normed: torch.Tensor = self._decoder.norm(hidden)
        return normed

    def read(self, final: torch.Tensor) -> torch.Tensor:
        """Return the logits (…, vocabulary) of final hidden states (…, d)."""
        return self._scaled(self._head(final))

    def _scaled(self, logits: torch.Tensor) -> torch.Tensor:
        if self._logit_scale != 1.0:
            logits = logits * self._logit_scale
        if self._logit_divisor != 1.0:
            logits = logits / self._logit_divisor
        return logits if self._cap is None else torch.tanh(logits / self._cap) * self._cap


def draft(
    skipping: Callable[[int, int], tuple[int, float]], cache: SlabCache, token: int, most: int, threshold: float
) -> list[Drafted]:
    """Return a chain of argmax tokens after the cached ones, as described in `LayerSkippingModel.draft`.

    While it runs, keys and values of the drafts are stored after the cached tokens, except in skipped layers, where
    they are not read. Then they are dropped: the verifying pass writes its own to the same places.

    `skipping` runs a pass of a token, the one at an index of the chain, and returns the argmax and its log-probability.
    """
    start, drafted = cache.length, list[Drafted]()
    try:
        for row in range(most):
            token, log_probability = skipping(token, row)
            cache.commit([0])
            probability = math.exp(log_probability)
            if not math.isfinite(probability):
                break
            drafted.append(Drafted(token, probability))
            if probability < threshold:
                break
    finally:
        cache.truncate(start)
    return drafted


def skipping_pass(
    loop: LayerLoop, cache: SlabCache, token: int, skipped: Set[int], mask: Masks, position: torch.Tensor
) -> torch.Tensor:
    """Return the logits (1, vocabulary) of a token after the cached ones, with some decoder layers skipped.

    The paper (Zhang et al. 2023, arXiv 2309.08168) skips attention and MLP separately, but how a layer combines the two
    differs between architectures.

    The mask is (1, 1, 1, cached + 1), or one for each kind of layer; the position is (1, 1).
    """
    hidden = loop.embed(torch.tensor([[token]], device=position.device))
    angles = loop.angles(hidden, position)
    for layer in range(loop.depth):
        if layer not in skipped:
            hidden = loop.through(layer, hidden, mask, position, angles, cache)
    return loop.read(loop.final(hidden))[0]


def rows_of(mask: Masks, begin: int, end: int, total: int) -> Masks:
    """Return rows `begin` to `end` of a mask (1, 1, total, cached + total), up to the place of the last one of them."""
    if isinstance(mask, dict):
        return {kind: one[..., begin:end, : one.shape[-1] - total + end] for kind, one in mask.items()}
    return mask[..., begin:end, : mask.shape[-1] - total + end]


def with_pseudo_rows(slots: Slots, carriers: Sequence[int], count: int) -> Slots:
    """Return all rows of a pass: the slots, then for each of `count` maps in turn one pseudo row of each carrier.

    Pseudo rows are made from hidden states of slots, and enter half-way up the model. The construction is ours (Wu et
    al. 2024, arXiv 2404.12022, says that linear maps make them and that they attend to the context and to each other).
    Row i, from 0, of a slot at position n has position n + 1 + i. It sees the cached tokens, the slot and its
    ancestors, the slot's rows before it, and itself. No slot sees a pseudo row, so the slots' logits are the same as
    without them. In this order, the rows present at any layer are always the first ones. Their tokens are 0.
    """
    real, own = len(slots), list(carriers)
    total = real + count * len(own)
    mask = np.zeros((total, total), np.bool_)
    mask[:real, :real] = slots.mask
    positions = [slots.positions]
    for step in range(count):
        for place, carrier in enumerate(own):
            row = real + step * len(own) + place
            mask[row, :real] = slots.mask[carrier]
            mask[row, real + place : row + 1 : len(own)] = True
        positions.append(slots.positions[own] + 1 + step)
    return Slots((*slots.tokens, *[0] * (total - real)), np.concatenate(positions), mask)


def run(
    loop: LayerLoop, slots: Slots, mask: Masks, positions: torch.Tensor, cache: SlabCache, want: Want
) -> tuple[torch.Tensor, Hidden]:
    """Run one pass; the keys and values of all rows go after the cached tokens, those of the slots first.

    The mask is (1, 1, rows, cached + rows), or one for each kind of layer; the positions are (1, rows).

    Returns:
        The logits (T, vocabulary) of the slots; their hidden states.
    """
    real, own = len(slots), list(want.carriers)
    if want.maps is None:
        logits, states = loop.whole_pass(slots, mask, cache, real)
        return logits, hidden_of(loop, states, real, want)
    embedded = loop.embed(torch.tensor([slots.tokens], device=positions.device))
    hidden, below = _with_pseudo_states(loop, embedded, mask, positions, cache, want.maps, own, want.lens)
    final = loop.final(hidden)[0]
    return loop.read(final[:real]), hidden_of(loop, final, real, want, below)


def hidden_of(
    loop: LayerLoop, final: torch.Tensor, real: int, want: Want, below: Sequence[torch.Tensor] = ()
) -> Hidden:
    """Return what a drafter gets of the (rows, d) final hidden states of a pass with `real` slots."""
    own, pseudo = list(want.carriers), None
    if want.maps is not None:
        pseudo = finite(final[real:]).view(len(want.maps.layers), len(own), -1).transpose(0, 1)
    return Hidden(final[:real], own, pseudo, loop.read, below, loop.final)


def _with_pseudo_states(
    loop: LayerLoop,
    hidden: torch.Tensor,
    mask: Masks,
    positions: torch.Tensor,
    cache: SlabCache,
    maps: TransferMaps,
    carriers: Sequence[int],
    lens: bool,
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the hidden states (1, rows, d) of slots and pseudo rows after the last layer, made from the slots' (1, T,
    d) before the first; and, with `lens`, those of the pseudo rows before each layer, (maps, C, d).
    """
    total, real = positions.shape[1], hidden.shape[1]
    angles: dict[str | None, object] = {}
    below: list[torch.Tensor] = []
    for layer in range(loop.depth):
        entered = [step for step, at in enumerate(maps.layers) if at == layer]
        if entered:
            entering = finite(transferred(maps, entered, hidden[0, carriers]))
            hidden = torch.cat([hidden, entering[None]], dim=1)
        if entered or not layer:
            count = hidden.shape[1]
            own_mask, own_positions = rows_of(mask, 0, count, total), positions[:, :count]
            angles = loop.angles(hidden, own_positions)
        if lens and count > real:
            # A copy: a layer may write into its input.
            below.append(hidden[0, real:].clone().view(-1, len(carriers), hidden.shape[-1]))
        hidden = loop.through(layer, hidden, own_mask, own_positions, angles, cache)
        finite(hidden[0, real:])
    return hidden, below


def transferred(maps: TransferMaps, steps: Sequence[int], hidden: torch.Tensor) -> torch.Tensor:
    """Return the (len(steps) · C, d) pseudo rows that enter together: map by map, made from the carriers' (C, d)."""
    return torch.cat([hidden @ maps.weights[step].t() for step in steps])


def finite(rows: torch.Tensor) -> torch.Tensor:
    """Zero in place what overflowed in pseudo rows: slots weigh their keys with 0, but 0 · NaN is NaN."""
    return rows.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
