"""Requests of drafters to a pass in addition to logits: hidden states, and pseudo rows that enter half-way up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor


@dataclass(frozen=True, slots=True)
class TransferMaps:
    """The trained part of hidden transfer (Wu et al. 2024, arXiv 2404.12022): one linear map for each token ahead.

    Attributes:
        layers: (k,) the decoder layer before which each pseudo row enters, in non-decreasing order: a later row sees
            the earlier ones.
        weights: (k, d, d) the maps, on the model's device: a row vector h becomes ``weights[i] @ h``.
    """

    layers: tuple[int, ...]
    weights: Tensor

    def __post_init__(self) -> None:
        if not self.layers or list(self.layers) != sorted(self.layers) or self.layers[0] < 0:
            raise ValueError(f"Pseudo rows enter at layers that do not fall, not at {self.layers}.")
        if self.weights.dim() != 3 or self.weights.shape[0] != len(self.layers):
            raise ValueError(f"There are {len(self.layers)} layers for maps of shape {tuple(self.weights.shape)}.")


@dataclass(frozen=True, slots=True)
class Want:
    """A drafter's request to one pass.

    Attributes:
        maps: the maps that make the pass's pseudo rows; None for no such rows.
        carriers: (C,) the slots that carry them, k rows each.
        lens: whether to return the pseudo rows as they enter each layer, see `Hidden.below`.
    """

    maps: TransferMaps | None = None
    carriers: Sequence[int] = ()
    lens: bool = False


class Hidden(NamedTuple):
    """The outputs of a pass in addition to logits. Valid until the next pass, which may overwrite them.

    Attributes:
        states: (T, d) each slot's final hidden state, the input of the model's output layer.
        carriers: (C,) the slots that carried pseudo rows.
        pseudo: (C, k, d) the same of their pseudo rows: row i of a slot at position n predicts the token at n + i + 2.
        read: the model's own output layer: hidden states (…, d) to logits (…, vocabulary).
        below: for each layer from that of the first map to the last layer, (j, C, d) the pseudo rows as they enter it,
            of the j maps applied so far; without the final norm. Empty unless requested.
        norm: the model's final norm: hidden states (…, d) of any layer to those that `read` takes.
    """

    states: Tensor
    carriers: Sequence[int]
    pseudo: Tensor | None
    read: Callable[[Tensor], Tensor]
    below: Sequence[Tensor] = ()
    norm: Callable[[Tensor], Tensor] = lambda states: states


def merged(wants: Sequence[Want | None], slots: Sequence[int] | None = None) -> Want | None:
    """Return the common request of several drafters to one pass; None where none requests anything.

    Args:
        wants: each drafter's request.
        slots: the only slots that may carry pseudo rows; if empty, nothing is requested. None for any slots.

    Raises:
        ValueError: two drafters request pseudo rows.
    """
    asked = [want for want in wants if want is not None]
    if slots is not None and not slots:
        return None
    with_rows = [want for want in asked if want.maps is not None]
    if len(with_rows) > 1:
        raise ValueError("One drafter at a time can have pseudo rows in a pass.")
    found = next(iter(with_rows or asked), None)
    if found is None or slots is None:
        return found
    carriers = [slot for slot in found.carriers if slot in slots]
    return replace(found, carriers=carriers) if carriers or found.maps is None else None
