"""Passes with pseudo rows: rows made from hidden states of slots that enter half-way up the model.

The construction is ours (Wu et al. 2024, arXiv 2404.12022, says that linear maps make them and that they attend to the
context and to each other). Row i, from 0, of a slot at position n has position n + 1 + i. It sees the cached tokens,
the slot and its ancestors, the slot's rows before it, and itself. No slot sees a pseudo row, so the slots' logits are
the same as without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ladechat.decoder.hidden import Hidden, TransferMaps, Want
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.layer_loop import LayerLoop, Masks
from ladechat.model.runners.slots import Slots


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a pass: T slots, then for each map in turn one pseudo row of each carrier.

    In this order, the rows present at any layer are always the first ones.

    Attributes:
        slots: tokens (0 for pseudo rows), positions and mask of all of them.
        real: T.
    """

    slots: Slots
    real: int

    @classmethod
    def of(cls, slots: Slots, carriers: Sequence[int], count: int) -> "Rows":
        """Return the rows of a pass over `slots` in which each carrier has `count` pseudo rows."""
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
        return cls(Slots((*slots.tokens, *[0] * (total - real)), np.concatenate(positions), mask), real)


def first_rows(mask: Masks, rows: int, total: int) -> Masks:
    """Return the part of a mask (1, 1, total, cached + total) for the first `rows` rows."""
    if isinstance(mask, dict):
        return {kind: one[..., :rows, : one.shape[-1] - total + rows] for kind, one in mask.items()}
    return mask[..., :rows, : mask.shape[-1] - total + rows]


def run(
    loop: LayerLoop, rows: Rows, mask: Masks, positions: torch.Tensor, cache: SlabCache, want: Want
) -> tuple[torch.Tensor, Hidden]:
    """Run one pass; the keys and values of all rows go after the cached tokens, those of the slots first.

    Args:
        loop: the model.
        rows: the rows of the pass.
        mask: (1, 1, rows, cached + rows), or one for each kind of layer.
        positions: (1, rows) in the text.
        cache: the KV cache, with room for the rows.
        want: the request from whose maps and carriers `rows` was made.

    Returns:
        The logits (T, vocabulary) of the slots; their hidden states.
    """
    total, own = len(rows.slots), list(want.carriers)
    hidden = loop.embed(torch.tensor([rows.slots.tokens[: rows.real]], device=positions.device))
    angles: dict[str | None, object] = {}
    below: list[torch.Tensor] = []
    count = 0
    for layer in range(loop.depth):
        entered = [] if want.maps is None else [i for i, at in enumerate(want.maps.layers) if at == layer]
        if want.maps is not None and entered:
            entering = _finite(transferred(want.maps, entered, hidden[0, own]))
            hidden = torch.cat([hidden, entering[None]], dim=1)
        if entered or not layer:
            count = hidden.shape[1]
            own_mask, own_positions = first_rows(mask, count, total), positions[:, :count]
            angles = loop.angles(hidden, own_positions)
        if want.lens and count > rows.real:
            # A copy: a layer may write into its input.
            below.append(hidden[0, rows.real :].clone().view(-1, len(own), hidden.shape[-1]))
        hidden = loop.through(layer, hidden, own_mask, own_positions, angles, cache)
        _finite(hidden[0, rows.real :])
    final = loop.final(hidden)[0]
    states = final[: rows.real]
    pseudo = None
    if want.maps is not None:
        pseudo = final[rows.real :].view(len(want.maps.layers), len(own), -1).transpose(0, 1)
    return loop.read(states), Hidden(states, own, pseudo, loop.read, below, loop.final)


def transferred(maps: TransferMaps, steps: Sequence[int], hidden: torch.Tensor) -> torch.Tensor:
    """Return the (len(steps) · C, d) pseudo rows that enter together: map by map, made from the carriers' (C, d)."""
    return torch.cat([hidden @ maps.weights[step].t() for step in steps])


def _finite(rows: torch.Tensor) -> torch.Tensor:
    """Zero in place what overflowed in pseudo rows: slots weigh their keys with 0, but 0 · NaN is NaN."""
    return rows.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
