"""The steps that a decoder yields, one per forward pass, and the limits of a run."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ladechat.decoder.common_prefix import common_prefix

if TYPE_CHECKING:
    from torch import Tensor

Verdict = Literal["accepted", "rejected", "untested"]
MODEL = "model"
"""The origin of a token that was not drafted."""


class Draft(NamedTuple):
    """The drafted tokens of one pass, as a tree: node i is slot i + 1; its parent is node `parents[i]`, or the last
    token for -1. `path` holds the accepted nodes, in order.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    sources: tuple[str, ...]
    path: tuple[int, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """For each node its verdict; `untested` if its parent was not accepted, so that the model never judged it."""
        on_path = {-1, *self.path}
        return tuple(
            "accepted" if node in on_path else "rejected" if parent in on_path else "untested"
            for node, parent in enumerate(self.parents)
        )


class WindowSnapshot(NamedTuple):
    """The Jacobi window that went into one pass, and the row that the pass wrote."""

    rows: tuple[tuple[int, ...], ...]
    fresh: tuple[int, ...]


class LensSnapshot(NamedTuple):
    """The tokens that pseudo rows predict at each layer: how the guesses that a pass has judged came about.

    They are the rows of the token at position t, made by the pass before.

    Attributes:
        after: the token at t + 1, the last one that the pass before emitted.
        layers: (R,) the number of layers that each row of `rows` has passed, rising by one; the last row, all of them.
        rows: the argmax of each position: index i is that at t + 2 + i. Low rows may lack positions whose map
            acts at a higher layer. The last row holds the guesses.
    """

    after: int
    layers: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]


class PoolOffer(NamedTuple):
    """An n-gram that the pool offered after the text's end (which `tail` does not repeat), and the outcome.

    `tried` is False beyond the guess limit and where it was not worth a slot; `matched` counts the leading tokens of
    `tail` that were accepted.
    """

    tail: tuple[int, ...]
    source: str
    tried: bool
    matched: int


class PoolSnapshot(NamedTuple):
    """The pool at one step.

    `lookups` and `hits` count the steps of this run that asked it and that got a guess, of those that G lets in;
    `added` counts the n-grams that are new since the step before. `key` is the token it was asked for continuations of,
    `offered` its guesses, each a (tail, source, …), `tried` how many tokens of each of the first of them were in the
    pass, and `emitted` the tokens that the step emitted.
    """

    ngrams: int
    lookups: int
    hits: int
    added: int
    key: int
    offered: Sequence[tuple[tuple[int, ...], str, int]]
    tried: tuple[int, ...]
    emitted: tuple[int, ...]

    @property
    def candidates(self) -> tuple[PoolOffer, ...]:
        """All guesses that were offered, with their outcome. Computed on access, not in the step."""
        tried = (*self.tried, *(0,) * (len(self.offered) - len(self.tried)))
        return tuple(
            PoolOffer(tail, source, count > 0, common_prefix(tail[:count], self.emitted))
            for (tail, source, _), count in zip(self.offered, tried, strict=True)
        )


class Step(NamedTuple):
    """One forward pass: the tokens it emitted (the model's own next token last, unless the run ended inside a draft).

    Attributes:
        tokens: the emitted tokens.
        logprobs: their natural log-probabilities under the unprocessed model distribution.
        origins: for each token the source of the draft that predicted it, or `MODEL`.
        slots: tokens in the pass; `cache_length`: tokens cached before it.
        forward_seconds: the duration of the pass, up to the moment its result was read.
        draft: the drafted tokens; None from a decoder without drafters.
        views: the drafters' snapshots, such as a `WindowSnapshot` and a `PoolSnapshot`.
        plain: whether the pass was one of plain decoding: one slot, and no hidden states.
        logits: (len(tokens), vocabulary) those that gave the tokens, if they are watched; else None.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    origins: tuple[str, ...]
    slots: int
    cache_length: int
    forward_seconds: float
    draft: Draft | None = None
    views: tuple[object, ...] = ()
    plain: bool = False
    logits: "Tensor | None" = None

    @property
    def window(self) -> WindowSnapshot | None:
        """The Jacobi window, if there is one."""
        return next((view for view in self.views if isinstance(view, WindowSnapshot)), None)

    @property
    def lens(self) -> LensSnapshot | None:
        """The tokens that pseudo rows predict at each layer, if there are any and the lens is on."""
        return next((view for view in self.views if isinstance(view, LensSnapshot)), None)

    @property
    def pool(self) -> PoolSnapshot | None:
        """The n-gram pool, if there is one."""
        return next((view for view in self.views if isinstance(view, PoolSnapshot)), None)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends: after a token of `eos_ids`, one for which `stop` returns True, or `max_new_tokens` tokens.

    The last token is emitted too. `stop` is called once for each emitted token, in order.
    """

    max_new_tokens: int
    eos_ids: Set[int] = field(default_factory=frozenset)
    stop: Callable[[int], bool] | None = None

    def ending(self, prompt_length: int, context_length: int) -> "Ending":
        """Return a countdown to the end of a run. Its last token is not fed to the model but must fit the context."""
        return Ending(self, min(self.max_new_tokens, context_length - prompt_length))


class Ending:
    """Decides for each emitted token whether it is the last one, and then sets `reached`.

    `room` is the number of tokens that may still follow.
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
