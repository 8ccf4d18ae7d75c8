"""What a drafter may want of a pass besides its logits: hidden states, and rows of its own that enter half-way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor


@dataclass(frozen=True, slots=True)
class TransferMaps:
    """The trained part of hidden transfer (Wu et al. 2024, arXiv 2404.12022): one linear map for each token ahead.

    Attributes:
        layers: (k,) the decoder layer that each pseudo row enters before, never falling: a later row sees the earlier.
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
    """What a drafter wants of one pass.

    Attributes:
        maps: of the pseudo rows that take part in it; None for no such rows.
        carriers: (C,) the slots that carry them, k rows each.
        lens: whether to hand out what the pseudo rows are on their way up, see `Hidden.below`.
    """

    maps: TransferMaps | None = None
    carriers: Sequence[int] = ()
    lens: bool = False


class Hidden(NamedTuple):
    """What a pass gave besides logits. Not to be kept, the next pass may overwrite it.

    Attributes:
        states: (T, d) each slot's hidden state, as the model's output layer reads it.
        carriers: (C,) the slots that carried pseudo rows.
        pseudo: (C, k, d) the same of their pseudo rows: row i of a slot at position n reads the token at n + i + 2.
        read: hidden states (…, d) to logits (…, vocabulary): the model's own output layer.
        below: for each layer from that of the first map up to the last one, (j, C, d) the pseudo rows as they go into
            it, of the j maps that have acted by then; without the final norm. Empty where nobody wants them.
        norm: hidden states (…, d) of any layer to those that `read` takes: the model's final norm.
    """

    states: Tensor
    carriers: Sequence[int]
    pseudo: Tensor | None
    read: Callable[[Tensor], Tensor]
    below: Sequence[Tensor] = ()
    norm: Callable[[Tensor], Tensor] = lambda states: states


def merged(wants: Sequence[Want | None], slots: Sequence[int] | None = None) -> Want | None:
    """What several drafters want of the same pass; None where none wants anything.

    Args:
        wants: of each drafter.
        slots: the only ones that may carry pseudo rows; if there are none, nothing is given. None for any.

    Raises:
        ValueError: two of them bring pseudo rows.
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
