"""The part of a runner of several processes that is the same for all of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.model_runner import Cache, ModelRunner

LOGITS_ONLY = "A model that several processes share gives logits alone."


class SharingRunner:
    """A `ModelRunner` over another one, whose passes several processes compute together.

    Attributes:
        loop: None; passes are without hidden states.
        capabilities: those of the runner below, with logits alone.
        context_length: that of the runner below.
    """

    loop = None

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self.capabilities: Capabilities = replace(runner.capabilities, logits_only=LOGITS_ONLY)
        self.context_length = runner.context_length

    @property
    def device(self) -> torch.device:
        return self._runner.device

    @property
    def tokens(self) -> Sequence[int]:
        return self._runner.tokens

    @property
    def max_positions(self) -> int:
        return self._runner.max_positions

    @property
    def cache(self) -> Cache | None:
        """See `ModelRunner.cache`: that of this process."""
        return self._runner.cache

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        return self._runner.cached_prefix(tokens)

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        raise ValueError(LOGITS_ONLY)

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        return self._runner.argmax(logits)

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        return self._runner.largest(logits, count)

    def set_aside(self, tokens: Sequence[int]) -> None:
        """Set nothing aside: if the memory sufficed for a copy in only some processes, their caches would differ."""

    def take_back(self) -> None:
        """Restore nothing: of a text that another one has overwritten, all after their common prefix is read again."""
