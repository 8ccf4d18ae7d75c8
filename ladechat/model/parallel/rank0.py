"""The runner of rank 0 for a model shared by several processes: it makes the workers run the same passes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.parallel.workers import Workers
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.runners.tree import TreeRunner

AnyRunner = TreeRunner | SingleTokenRunner

LOGITS_ONLY = "A model that several processes share gives logits alone."


@dataclass(frozen=True)
class Prefill:
    """The order to start a prompt: read its first chunk."""

    tokens: tuple[int, ...]


@dataclass(frozen=True)
class ReadOn:
    """The order to read the next chunk of the prompt."""


@dataclass(frozen=True)
class Forward:
    """The order to run a pass. A worker drops the logits."""

    tree: SlotTree


@dataclass(frozen=True)
class Commit:
    """The order to commit slots of the last pass."""

    slots: tuple[int, ...]


@dataclass(frozen=True)
class SaveMemory:
    """The order to free the cache."""


class Rank0Runner:
    """The `ladechat.decoder.runner.Runner` of the engine process, which is rank 0.

    Its callers need not know of the workers: their caches hold the same tokens as that of this process, each for its
    own heads. An order is sent before it is executed in this process, because the passes of all processes wait for each
    other.

    Args:
        runner: the runner of this process's shard.
        workers: the other processes, with runners of the same kind.
    """

    def __init__(self, runner: AnyRunner, workers: Workers) -> None:
        self._runner = runner
        self._workers = workers

    @property
    def capabilities(self) -> Capabilities:
        """See `Runner.capabilities`. Workers run passes without hidden states."""
        return replace(self._runner.capabilities, logits_only=LOGITS_ONLY)

    @property
    def device(self) -> torch.device:
        """The device of this process's shard."""
        return self._runner.device

    @property
    def tokens(self) -> Sequence[int]:
        """See `Runner.tokens`."""
        return self._runner.tokens

    @property
    def context_length(self) -> int:
        """See `Runner.context_length`."""
        return self._runner.context_length

    @property
    def max_positions(self) -> int:
        """See `Runner.max_positions`."""
        return self._runner.max_positions

    @property
    def cache(self) -> SlabCache | None:
        """The KV cache of this process's heads."""
        return self._runner.cache

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """Return the length of the prefix of these tokens that is cached already."""
        return self._runner.cached_prefix(tokens)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`."""
        with self._together():
            self._workers.send(Prefill(tuple(tokens)))
            reading = self._runner.prefill(tokens)
            done = next(reading, None)
        while done is not None:
            yield done
            with self._together():
                self._workers.send(ReadOn())
                done = next(reading, None)

    def prepare(self) -> None:
        """See `Runner.prepare`; nothing to do."""

    def forward(self, tree: SlotTree) -> torch.Tensor:
        """See `Runner.forward`."""
        with self._together():
            self._workers.send(Forward(tree))
            return self._runner.forward(tree)

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        """See `Runner.forward_hidden`.

        Raises:
            ValueError: always; its passes give logits only.
        """
        raise ValueError(self.capabilities.logits_only)

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """See `Runner.argmax`. Every process has all logits of a pass, so the workers are not needed."""
        return self._runner.argmax(logits)

    def commit(self, slots: Sequence[int]) -> None:
        """See `Runner.commit`."""
        with self._together():
            self._workers.send(Commit(tuple(slots)))
            self._runner.commit(slots)

    def set_aside(self, tokens: Sequence[int]) -> None:
        """Set nothing aside: if the memory sufficed for a copy in only some processes, their caches would differ."""

    def take_back(self) -> None:
        """Restore nothing: of a text that another one has overwritten, all after their common prefix is read again."""

    def save_memory(self) -> None:
        """See `TreeRunner.save_memory`; for an out-of-memory error outside of a pass."""
        with self._together():
            self._workers.send(SaveMemory())
            self._runner.save_memory()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Report any error to `Workers.on_error`: it leaves the others in the middle of a pass, without recovery."""
        try:
            yield
        except Exception as error:  # after any error of a model the others are out of step
            self._workers.on_error(error)


def follow_orders(runner: AnyRunner, orders: Iterator[object]) -> None:
    """Execute the orders of a `Rank0Runner` with a worker's runner, until they end."""
    reading: Iterator[int] = iter(())
    for order in orders:
        match order:
            case Prefill(tokens):
                reading = runner.prefill(tokens)
                next(reading, None)
            case ReadOn():
                next(reading, None)
            case Forward(tree):
                runner.forward(tree)
            case Commit(slots):
                runner.commit(slots)
            case SaveMemory():
                runner.save_memory()
