"""What may run passes in the place of a model itself."""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from ladechat.decoder.verify_mask import StepLayout
from ladechat.model.kv_cache import SlabCache

Masks = Callable[[StepLayout], list[Tensor]]
"""Makes the (1, 1, T, L + T) masks of a layout over L cached tokens, one of each kind of layer."""


class Passes(Protocol):
    """Ready-made passes of one model, for some numbers of slots."""

    @property
    def sizes(self) -> list[int]:
        """The numbers of slots that passes are made for; what passes cost is measured anew when they change.

        A layout of fewer slots is filled up to the next of them; one of more than the last costs what it has.
        """
        ...

    def look(self) -> None:
        """Called when an answer begins, after its prompt was read: what takes long may be done now."""
        ...

    def forward(self, layout: StepLayout, cache: SlabCache, masks: Masks) -> Tensor | None:
        """A pass behind what is cached: the (T, vocabulary) logits, valid until the next pass.

        The keys and values of slot i enter the cache's rows at place L + i, as those of the model itself do. None if
        there is no pass for this layout now: then the model itself runs.
        """
        ...

    def read(self, logits: Tensor) -> tuple[list[int], list[float]] | None:
        """The likeliest tokens of the logits of such a pass, and their log-probabilities. None leaves that to torch."""
        ...

    def prepare(self) -> None:
        """Called before all sizes are timed, behind what is cached: those that can be made now should be."""
        ...

    def rest(self) -> None:
        """Called between two passes, when the slots of the last one have been kept."""
        ...
