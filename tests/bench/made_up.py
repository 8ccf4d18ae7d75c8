"""Answers and methods that are made up, so that every figure can be worked out by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ladechat.bench.methods import TimedAnswer
from ladechat.bench.prompts import BenchPrompt
from ladechat.decoder.step import Limits
from ladechat.model.loading.device import Threads


def answer(tokens: Sequence[int], passes: int = 1, first: int = 1, rest_seconds: float = 1.0) -> TimedAnswer:
    return TimedAnswer(tuple(tokens), first, passes, slots=3 * passes, first_seconds=0.25, rest_seconds=rest_seconds)


def prompt(kind: str, name: str = "", expected: Sequence[int] = ()) -> BenchPrompt:
    return BenchPrompt(kind, name or kind, [1, 2, 3], tuple(expected))


@dataclass
class Scripted:
    """A method that writes down when its turn was, and always answers the same."""

    name: str
    log: list[tuple[str, int]] = field(default_factory=list)
    says: tuple[int, ...] = (5, 6)
    threads: Threads = field(default_factory=lambda: Threads(1))

    def answer(self, prompt: list[int], limits: Limits) -> TimedAnswer:
        self.log.append((self.name, prompt[0]))
        return answer(self.says)
