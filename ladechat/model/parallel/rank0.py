"""The runner of rank 0 for a model shared by several processes: it makes the workers run the same passes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.parallel.workers import READ_ON, Workers
from ladechat.model.runners.model_runner import Cache, ModelRunner

LOGITS_ONLY = "A model that several processes share gives logits alone."


class Rank0Runner:
    """The `ModelRunner` of the engine process, which is rank 0.

    Its callers need not know of the workers: their caches hold the same tokens as that of this process, each for its
    own heads. An order is sent before it is executed in this process, because the passes of all processes wait for each
    other.

    Attributes:
        loop: None; workers run passes without hidden states.
        capabilities: those of the runner, with logits alone.
        context_length: that of the runner.
    """

    loop = None

    def __init__(self, runner: ModelRunner, workers: Workers) -> None:
        self._runner = runner
        self._workers = workers
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
        """See `ModelRunner.cache`: that of this process's heads."""
        return self._runner.cache

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        return self._runner.cached_prefix(tokens)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        with self._together("prefill", tuple(tokens)):
            reading = self._runner.prefill(tokens)
            done = next(reading, None)
        while done is not None:
            yield done
            with self._together(READ_ON):
                done = next(reading, None)

    def prepare(self) -> None:
        """See `Runner.prepare`; nothing to do."""

    def forward(self, tree: SlotTree) -> torch.Tensor:
        with self._together("forward", tree):
            return self._runner.forward(tree)

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        raise ValueError(LOGITS_ONLY)

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """See `Runner.argmax`. Every process has all logits of a pass, so the workers are not needed."""
        return self._runner.argmax(logits)

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        """See `Runner.largest`."""
        return self._runner.largest(logits, count)

    def commit(self, slots: Sequence[int]) -> None:
        with self._together("commit", tuple(slots)):
            self._runner.commit(slots)

    def set_aside(self, tokens: Sequence[int]) -> None:
        """Set nothing aside: if the memory sufficed for a copy in only some processes, their caches would differ."""

    def take_back(self) -> None:
        """Restore nothing: of a text that another one has overwritten, all after their common prefix is read again."""

    def save_memory(self) -> None:
        """See `ModelRunner.save_memory`; for an out-of-memory error outside of a pass."""
        with self._together("save_memory"):
            self._runner.save_memory()

    def use_graphs(self) -> None:
        """See `ModelRunner.use_graphs`; there are none."""

    @contextmanager
    def _together(self, *order: object) -> Iterator[None]:
        """Send the workers an order that this process executes too, see `follow_orders`.

        Any error is reported to `Workers.on_error`: it leaves the others in the middle of a pass, without recovery.
        """
        try:
            self._workers.send(order)
            yield
        except Exception as error:  # after any error of a model the others are out of step
            self._workers.on_error(error)
