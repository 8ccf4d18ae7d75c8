"""A model whose passes take the time that a test says, on a clock that only they move."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.largest import largest
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree

VOCABULARY = 4


class ClockedRunner:
    """A `Runner` whose logits say nothing. It stands in for the clock of a module too.

    Args:
        seconds: of a pass, by its slots.
        single_token: why it takes one slot a pass, if it does.
        max_positions: how many positions a pass may use.

    Attributes:
        passes: the slots of each pass so far.
        seconds: of a pass, by its slots: a test may change it.
    """

    def __init__(
        self, seconds: Callable[[int], float], single_token: str | None = None, max_positions: int = 512
    ) -> None:
        self.capabilities = Capabilities(single_token)
        self.context_length = self.max_positions = max_positions
        self.tokens: list[int] = []
        self.seconds = seconds
        self.passes: list[int] = []
        self._now = 0.0
        self._tree = SlotTree(0)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        self.tokens = list(tokens[:-1])
        yield len(self.tokens)

    def prepare(self) -> None:
        pass

    def forward(self, tree: SlotTree) -> torch.Tensor:
        assert len(tree) <= self.max_positions
        self._tree = tree
        self.passes.append(len(tree))
        self._now += self.seconds(len(tree))
        return torch.zeros(len(tree), VOCABULARY)

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        raise ValueError(self.capabilities.logits_only)

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        return [0] * len(logits), None

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        return largest(logits, count)

    def commit(self, slots: Sequence[int]) -> None:
        self.tokens += [self._tree.tokens[slot] for slot in slots]

    def perf_counter(self) -> float:
        """The time, as `time.perf_counter` tells it."""
        return self._now


def is_the_clock_of(module: str, runner: ClockedRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a module look at this runner's clock."""
    monkeypatch.setattr(f"ladechat.{module}.time", runner)
