"""One model in several processes: what the runner of the first is asked to do, those of the others do too."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from ladechat.decoder.verify_mask import StepLayout
from ladechat.model.eager import EagerRunner
from ladechat.model.followers import Followers
from ladechat.model.kv_cache import SlabCache
from ladechat.model.stepwise import StepwiseRunner

AnyRunner = EagerRunner | StepwiseRunner


@dataclass(frozen=True)
class Prefill:
    """Begin with a prompt: read its first chunk."""

    tokens: tuple[int, ...]


@dataclass(frozen=True)
class ReadOn:
    """Read the next chunk of the prompt."""


@dataclass(frozen=True)
class Forward:
    """Run a pass. Its logits are of no use to a follower."""

    layout: StepLayout


@dataclass(frozen=True)
class Keep:
    """Keep slots of the last pass."""

    slots: tuple[int, ...]


@dataclass(frozen=True)
class SaveMemory:
    """Give back what the cache takes."""


class LeadingRunner:
    """The `ladechat.decoder.runner.Runner` of the process that speaks the protocol.

    Nobody above it has to know that there are others: their caches hold the same tokens as the one here, each for its
    own heads. An order goes out before it is carried out here, for the passes of all of them wait for each other.

    Args:
        runner: of the shard of this process.
        followers: the other processes; their runners are as this one.
    """

    compiled = None
    """Its passes run as the model is."""

    def __init__(self, runner: AnyRunner, followers: Followers) -> None:
        self._runner = runner
        self._followers = followers

    @property
    def model(self) -> PreTrainedModel:
        """The shard of this process. A pass through it has to be one of all processes: ask the runner."""
        return self._runner.model

    @property
    def tokens(self) -> Sequence[int]:
        """See `Runner.tokens`."""
        return self._runner.tokens

    @property
    def context_length(self) -> int:
        """See `Runner.context_length`."""
        return self._runner.context_length

    @property
    def reach(self) -> int:
        """See `Runner.reach`."""
        return self._runner.reach

    @property
    def plain_only(self) -> str | None:
        """See `Runner.plain_only`."""
        return self._runner.plain_only

    @property
    def cache(self) -> SlabCache | None:
        """Keys and values of the heads of this process."""
        return self._runner.cache

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the first of these tokens need not be read again."""
        return self._runner.cached_prefix(tokens)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`."""
        with self._together():
            self._followers.tell(Prefill(tuple(tokens)))
            reading = self._runner.prefill(tokens)
            done = next(reading, None)
        while done is not None:
            yield done
            with self._together():
                self._followers.tell(ReadOn())
                done = next(reading, None)

    def forward(self, layout: StepLayout) -> torch.Tensor:
        """See `Runner.forward`."""
        with self._together():
            self._followers.tell(Forward(layout))
            return self._runner.forward(layout)

    def read(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """See `Runner.read`. All processes have the logits of a pass."""
        return self._runner.read(logits)

    def keep(self, slots: Sequence[int]) -> None:
        """See `Runner.keep`."""
        with self._together():
            self._followers.tell(Keep(tuple(slots)))
            self._runner.keep(slots)

    def save_memory(self) -> None:
        """See `EagerRunner.save_memory`; here for what was used up outside of a pass."""
        with self._together():
            self._followers.tell(SaveMemory())
            self._runner.save_memory()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """What fails in one process leaves the others in the middle of a pass: there is no way on from there."""
        try:
            yield
        except Exception as error:  # whatever a model raises, the others are out of step by it
            self._followers.on_error(error)


def obey(runner: AnyRunner, orders: Iterator[object]) -> None:
    """Do with a runner what a `LeadingRunner` has others do, until the orders end."""
    reading: Iterator[int] = iter(())
    for order in orders:
        match order:
            case Prefill(tokens):
                reading = runner.prefill(tokens)
                next(reading, None)
            case ReadOn():
                next(reading, None)
            case Forward(layout):
                runner.forward(layout)
            case Keep(slots):
                runner.keep(slots)
            case SaveMemory():
                runner.save_memory()
