"""What every decoder says after each forward pass, and how it is asked to run."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from ladechat.decoder.selection import Selector

Source = Literal["window", "prompt", "accepted", "earlier"]
Origin = Literal["window", "prompt", "accepted", "earlier", "model"]
Verdict = Literal["accepted", "rejected", "untested"]


class Draft(NamedTuple):
    """The tokens that one pass verified, as a tree: node i hangs on `parents[i]`, or on the last token for -1.

    `path` are the accepted nodes, in order.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    sources: tuple[Source, ...]
    path: tuple[int, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """On each node. Worked out where somebody asks, and not in the step."""
        on_path = {-1, *self.path}
        return tuple(
            "accepted" if node in on_path else "rejected" if parent in on_path else "untested"
            for node, parent in enumerate(self.parents)
        )


class WindowSnapshot(NamedTuple):
    """The window as it went into one pass, and the row that the pass wrote."""

    rows: tuple[tuple[int, ...], ...]
    fresh: tuple[int, ...]


class Candidate(NamedTuple):
    """An n-gram of the pool that starts with the last token (not repeated in `tail`), and how it fared.

    `tried` is False for those beyond the guess limit; `matched` counts the leading tokens of `tail` that were accepted.
    """

    tail: tuple[int, ...]
    source: Source
    tried: bool
    matched: int


class PoolSnapshot(NamedTuple):
    """The pool at one step.

    `lookups` and `hits` count steps of this run that asked it, and got a guess; `asked` says whether this one did, and
    `added` how many n-grams are new since the step before. `key` is the token behind which it was asked; of steps that
    do not ask, the one behind which they began. `offered` are the guesses that it had, each a
    `ladechat.decoder.ngram_pool.Guess`; the first `tried` of them were drafted. `accepted` are the drafted tokens that
    were right, in a row.
    """

    ngrams: int
    lookups: int
    hits: int
    added: int
    key: int
    offered: Sequence[tuple[tuple[int, ...], Source, int]] = ()
    tried: int = 0
    accepted: tuple[int, ...] = ()
    asked: bool = True

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that were offered, and how far each got. Worked out where somebody asks, and not in the step."""
        return tuple(
            Candidate(tail, source, rank < self.tried, agreeing(tail, self.accepted) if rank < self.tried else 0)
            for rank, (tail, source, _) in enumerate(self.offered)
        )


def agreeing(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


class Step(NamedTuple):
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
    """When a run ends: after a token of `eos_ids`, one of which `stop` says so, or `max_new_tokens` tokens.

    The last token is emitted too. `stop` is asked once for each emitted token, in order.
    """

    max_new_tokens: int
    eos_ids: Set[int] = field(default_factory=frozenset)
    stop: Callable[[int], bool] | None = None

    def room(self, prompt_length: int, context_length: int) -> int:
        """How many tokens a run may emit. The last one is not fed to the model, but has its place in the context."""
        return min(self.max_new_tokens, context_length - prompt_length)

    def ending(self, room: int) -> "Ending":
        """Counts a run of at most `room` tokens down to its end."""
        return Ending(self, room)


class Ending:
    """Says of each token that is emitted whether it is the last: then the end is `reached`.

    `room` is how many may still come.
    """

    def __init__(self, limits: Limits, room: int) -> None:
        self._limits = limits
        self.room = room
        self.reached = room <= 0

    def __call__(self, token: int) -> bool:
        self.room -= 1
        stopped = self._limits.stop is not None and self._limits.stop(token)
        self.reached = stopped or self.room <= 0 or token in self._limits.eos_ids
        return self.reached


class Decoder(Protocol):
    """A way of generating: an iterator of steps."""

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """Generate until the limits or the end of the model's context.

        The concatenated `Step.tokens` are the tokens that plain decoding emits. Closing the iterator between two steps
        leaves the runner's cache consistent.

        Args:
            prompt: at least one token.
            limits: when to end.
            selector: chooses the tokens, and has seen the prompt; None takes the likeliest ones. Its selection may be
                assigned between two steps.
            generated: how many of the last tokens of `prompt` are text of this answer already, where another decoder
                began it.
        """
        ...
