"""The interface of a model that drafts for itself with some of its layers skipped."""

from collections.abc import Set
from typing import NamedTuple, Protocol, runtime_checkable


class Drafted(NamedTuple):
    """A drafted token, and the probability (0 to 1) that the draft model gave it."""

    token: int
    probability: float


@runtime_checkable
class LayerSkippingModel(Protocol):
    """A runner's model with some of its decoder layers skipped: cheaper, and often right."""

    @property
    def layers(self) -> int:
        """The number of decoder layers; 0 where it cannot draft, since they cannot be run one by one."""
        ...

    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        """Draft a chain of argmax tokens, one per pass, without changing the cached tokens.

        The drafting passes attend to the keys and values that the whole model cached. An uncommitted pass is lost.

        Args:
            token: the last token of the text, which follows the cached ones.
            skipped: indices of the skipped layers, from 0; not all of them.
            most: the most tokens to draft; the last token and all drafts but one must fit into the context.
            threshold: a draft with a lower probability is the last one.

        Returns:
            1 to `most` tokens; fewer, or none, where the logits become NaN or infinite without the skipped layers.

        Raises:
            ValueError: it cannot draft, or a token would lie beyond the context.
        """
        ...


def layers_of(runner: object) -> int:
    """Return how many decoder layers of a runner's model can be run one by one: all of them, or 0."""
    return runner.layers if isinstance(runner, LayerSkippingModel) else 0
