"""What every decoder says after each forward pass, and how it is asked to run."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, Protocol

Source = Literal["window", "prompt", "accepted"]
Origin = Literal["window", "prompt", "accepted", "model"]
Verdict = Literal["accepted", "rejected", "untested"]


@dataclass(frozen=True, slots=True)
class Draft:
    """The tokens that one pass verified, as a tree: node i hangs on `parents[i]`, or on the last token for -1."""

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    sources: tuple[Source, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class WindowSnapshot:
    """The window as it went into one pass, and the row that the pass wrote."""

    rows: tuple[tuple[int, ...], ...]
    fresh: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An n-gram of the pool that starts with the last token (not repeated in `tail`), and how it fared.

    `tried` is False for those beyond the guess limit; `matched` counts the leading tokens of `tail` that were accepted.
    """

    tail: tuple[int, ...]
    source: Source
    tried: bool
    matched: int


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """The pool at one step. `lookups` and `hits` count steps of this run that asked it, and got a guess."""

    ngrams: int
    lookups: int
    hits: int
    added: int
    key: int
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass: the tokens it emitted (the model's own next token last, unless the run ended inside a draft).

    `logprobs` are natural logarithms under the unwarped model distribution. `forward_seconds` covers the pass up to the
    moment its result was read; `slots` is the number of tokens in the pass, `cache_length` the tokens cached before it.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    origins: tuple[Origin, ...]
    slots: int
    cache_length: int
    forward_seconds: float
    draft: Draft | None = None
    window: WindowSnapshot | None = None
    pool: PoolSnapshot | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends: after a token of `eos_ids` (emitted too), or after `max_new_tokens` tokens."""

    max_new_tokens: int
    eos_ids: Set[int] = field(default_factory=frozenset)

    def room(self, prompt_length: int, context_length: int) -> int:
        """How many tokens a run may emit. The last one is not fed to the model, but has its place in the context."""
        return min(self.max_new_tokens, context_length - prompt_length)

    def cut(self, tokens: Sequence[int], room: int) -> tuple[int, ...]:
        """The leading part of `tokens` that may be emitted: at most `room` of them, and none after an end of text."""
        for index, token in enumerate(tokens[:room]):
            if token in self.eos_ids:
                return tuple(tokens[: index + 1])
        return tuple(tokens[:room])


class Decoder(Protocol):
    """A way of generating: an iterator of steps."""

    def run(self, prompt: Sequence[int], limits: Limits, generated: int = 0) -> Iterator[Step]:
        """Generate until the limits or the end of the model's context.

        Greedy: the concatenated `Step.tokens` are the tokens that plain decoding emits. Closing the iterator between
        two steps leaves the runner's cache consistent.

        Args:
            prompt: at least one token.
            limits: when to end.
            generated: how many of the last tokens of `prompt` are text of this answer already, where another decoder
                began it.
        """
        ...
