"""What a drafter needs of a model that drafts for itself."""

from collections.abc import Set
from typing import NamedTuple, Protocol, runtime_checkable


class Drafted(NamedTuple):
    """A drafted token, and the probability (0 to 1) that the draft model gives it where it drafted it."""

    token: int
    probability: float


@runtime_checkable
class LayerSkippingModel(Protocol):
    """A runner's model with some of its decoder layers skipped: cheaper, and often right."""

    @property
    def layers(self) -> int:
        """How many decoder layers there are; 0 where it cannot draft, since they cannot be run one by one."""
        ...

    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        """Draft a chain of the likeliest tokens, one a pass, without touching what is cached.

        The cached tokens are seen as the whole model cached them. A pass that was not committed yet is lost.

        Args:
            token: the last token of the text, which follows the cached ones.
            skipped: the layers that are left out, from 0; not all of them.
            most: how many tokens at most; the last token and all drafts but one must have their place in the context.
            threshold: a draft with a lower probability is the last one.

        Returns:
            1 to `most` tokens; fewer, or none, where the model's logits stop being numbers without its skipped layers.

        Raises:
            ValueError: it cannot draft, or a token would lie beyond the context.
        """
        ...


def layers_of(runner: object) -> int:
    """How many decoder layers of a runner's model can be run one by one: all of them, or 0."""
    return runner.layers if isinstance(runner, LayerSkippingModel) else 0
