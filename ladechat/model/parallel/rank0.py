"""The runners of rank 0 for a model with which several processes compute: they make the workers run the same passes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.parallel.part import DistributedLogits, PartRunner
from ladechat.model.parallel.sharing import SharingRunner
from ladechat.model.parallel.workers import READ_ON, Workers
from ladechat.model.runners.model_runner import ModelRunner


class Rank0Runner(SharingRunner):
    """The `ModelRunner` of the engine process, which is rank 0.

    Its callers need not know of the workers: their caches hold the same tokens as that of this process, each for its
    own heads. An order is sent before it is executed in this process, because the passes of all processes wait for each
    other.
    """

    def __init__(self, runner: ModelRunner, workers: Workers) -> None:
        super().__init__(runner)
        self._workers = workers

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

    def commit(self, slots: Sequence[int]) -> None:
        with self._together("commit", tuple(slots)):
            self._runner.commit(slots)

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


class LookaheadRank0(Rank0Runner):
    """The runner of rank 0, whose passes all processes share."""

    def __init__(self, part: PartRunner, workers: Workers) -> None:
        super().__init__(part, workers)
        self._part = part
        self._count = 0
        """How many of the largest logits the last pass was asked for: they are gathered with the next one."""

    def prepare(self) -> None:
        with self._together("prepare"):
            self._part.prepare()

    def use_graphs(self) -> None:
        with self._together("use_graphs"):
            self._part.use_graphs()

    def forward(self, tree: SlotTree) -> torch.Tensor:
        """See `Runner.forward`."""
        count, self._count = self._count, 0
        with self._together("forward", tree, count):
            logits = self._part.forward(tree, count)
        logits.fetch = self._rows
        return logits

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        if not isinstance(logits, DistributedLogits):
            return super().argmax(logits)
        return logits.gathered[0].astype(np.int64).tolist(), logits.gathered[1].tolist()

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        if not isinstance(logits, DistributedLogits):
            return super().largest(logits, count)
        self._count = count
        if len(logits.gathered) < 2 + count:
            with self._together("gather_largest", count):
                return self._part.gather_largest(count)
        return logits.gathered[2 : 2 + count].T.astype(np.int64)

    def _rows(self, slots: Sequence[int]) -> torch.Tensor:
        if self._part.is_here(slots):
            return self._part.rows(slots)
        with self._together("rows", tuple(slots)):
            return self._part.rows(slots)
