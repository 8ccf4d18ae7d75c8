"""Chooses W, N and G while a model writes: what a pass of T slots costs, set against what its drafts yield.

What guesses of the pool would have yielded can be seen without trying them: a step lists what the pool offered, and the
text that follows says how much of it was right. What a window adds can only be tried; that is done where it may pay,
and for a small part of the time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.ngram_pool import Tail
from ladechat.decoder.step import Step

GUESSES_ONLY = tuple(LookaheadSettings(0, 4, guesses) for guesses in (0, 1, 2, 3, 5, 8))
"""Plain decoding, and settings without a window."""

WITH_WINDOW = tuple(
    LookaheadSettings(*numbers)
    for numbers in ((2, 3, 2), (3, 3, 3), (5, 3, 5), (7, 3, 7), (5, 5, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15))
)

REMEMBERED = 100
"""Older tokens count less and less: a text changes."""
STAY = 16
"""How many steps a window is kept at least: its columns tell after N − 1 passes, and the pool has to fill."""
STAY_WITHOUT = 8
SAMPLED = 3
"""Of so many steps of plain decoding one is looked at: where steps are short, looking takes its time too."""
EXPLORED = 0.04
"""The part of the time that windows may be tried in without knowing whether they pay."""
FORGOTTEN = 400
"""After so many steps without it, what a window is worth is open again."""
HOPE = 0.15
"""What each doubling of W may add to the tokens of a step, as far as is known before it was tried."""
BETTER = 1.03
"""By how much other settings must be expected to be faster before they are chosen."""


@dataclass
class _Mean:
    """A mean over tokens that forgets."""

    value: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.weight = min(self.weight + weight, REMEMBERED)
        self.value += (value - self.value) * weight / self.weight


@dataclass
class _Yield:
    """What guesses yield, by token: the part of a step that it takes, and the seconds."""

    steps: _Mean = field(default_factory=_Mean)
    seconds: _Mean = field(default_factory=_Mean)


@dataclass
class _Tried:
    """What a window was worth: its tokens of a step, its seconds a token as a part of those without it, and when."""

    steps: _Mean = field(default_factory=_Mean)
    share: _Mean = field(default_factory=_Mean)
    slots: _Mean = field(default_factory=_Mean)
    last: int = -FORGOTTEN


@dataclass(frozen=True, slots=True)
class Estimate:
    """What settings are expected to do. `known` is False where a window is only hoped for."""

    settings: LookaheadSettings
    tokens_per_step: float
    seconds_per_token: float
    known: bool

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return 1 / self.seconds_per_token


class Tuner:
    """Learns from the steps of a decoder which settings are fastest.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
    """

    def __init__(self, cost: Callable[[int], float]) -> None:
        self._cost = cost
        self._text: list[int] = []
        self._offered: deque[tuple[int, int, list[Tail]]] = deque()
        self._guesses = {settings.guesses: _Yield() for settings in GUESSES_ONLY}
        self._windows = {settings: _Tried() for settings in WITH_WINDOW}
        self._host = _Mean()
        self._steps = self._since = 0
        self._seconds = self._exploring = 0.0
        self._settings = GUESSES_ONLY[0]
        self._known = True

    @property
    def settings(self) -> LookaheadSettings:
        """What the next step should be decoded with."""
        return self._settings

    def begin(self) -> None:
        """Another text: what the steps before it were offered is not judged by it."""
        self._text.clear()
        self._offered.clear()

    def observe(self, step: Step, seconds: float) -> None:
        """Learn from a step that was decoded with `settings` and took so long in all; then choose anew."""
        self._steps += 1
        self._since += 1
        self._seconds += seconds
        self._exploring += 0.0 if self._known else seconds
        self._host.add(max(0.0, seconds - step.forward_seconds))
        if step.pool is not None and (self._settings.guesses or self._steps % SAMPLED == 0):
            of_text = [one.tail for one in step.pool.candidates if one.source != "window"]
            self._offered.append((len(self._text), len(step.tokens), of_text))
        self._text.extend(step.tokens)
        self._judge_guesses()
        if self._settings in self._windows:
            self._judge_window(self._windows[self._settings], step)
        if self._since >= (STAY if self._settings.window else STAY_WITHOUT):
            self._choose()

    def estimates(self) -> Iterator[Estimate]:
        """What is expected of all settings among which it chooses."""
        for settings in GUESSES_ONLY:
            guesses = self._guesses[settings.guesses]
            plain = self._cost(1) + self._host.value
            seconds = guesses.seconds.value if settings.guesses and guesses.seconds.weight else plain
            yield Estimate(settings, 1 / (guesses.steps.value or 1.0), seconds, known=True)
        for settings, tried in self._windows.items():
            base = self._base(settings)
            if tried.share.weight and self._steps - tried.last < FORGOTTEN:
                seconds = tried.share.value * base.seconds.value
                yield Estimate(settings, 1 / tried.steps.value, seconds, known=True)
            else:
                hoped = 1 / (base.steps.value or 1.0) + HOPE * (1 + settings.window).bit_length()
                slots = tried.slots.value or (settings.ngram - 1) * settings.window + settings.guesses
                seconds = (self._cost(round(slots)) + self._host.value) / hoped
                yield Estimate(settings, hoped, seconds, known=False)

    def _base(self, settings: LookaheadSettings) -> _Yield:
        """What is known of as many guesses, or of the next fewer, without the window."""
        return self._guesses[max(count for count in self._guesses if count <= settings.guesses)]

    def _judge_guesses(self) -> None:
        """Compare what was offered with the text, as soon as that is long enough.

        A step that emitted n tokens stands for n places of the text: whoever accepts more in one visits fewer of them.
        """
        longest = GUESSES_ONLY[0].ngram - 1
        counts = list(self._guesses)
        while self._offered and self._offered[0][0] + longest <= len(self._text):
            place, stands_for, tails = self._offered.popleft()
            following = tuple(self._text[place : place + longest])
            for count, (tokens, slots) in zip(counts, _yields(tails, following, counts), strict=True):
                known = self._guesses[count]
                known.steps.add(1 / tokens, stands_for)
                known.seconds.add((self._cost(slots) + self._host.value) / tokens, stands_for)

    def _judge_window(self, tried: _Tried, step: Step) -> None:
        tried.last = self._steps
        tried.slots.add(step.slots)
        base = self._base(self._settings).seconds.value
        if self._since >= self._settings.ngram and base:
            tokens = len(step.tokens)
            seconds = (self._cost(step.slots) + self._host.value) / tokens
            tried.steps.add(1 / tokens, tokens)
            tried.share.add(seconds / base, tokens)

    def _choose(self) -> None:
        estimates = {one.settings: one for one in self.estimates()}
        best = now = estimates[self._settings]
        fastest = min((one for one in estimates.values() if one.known), key=lambda one: one.seconds_per_token)
        if not now.known or fastest.rate > BETTER * now.rate:
            best = fastest
        hoped = min(estimates.values(), key=lambda one: one.seconds_per_token)
        if not hoped.known and hoped.rate > BETTER * best.rate and self._exploring <= EXPLORED * self._seconds:
            best = hoped
        self._since = 0 if best.settings != self._settings or not best.settings.window else self._since
        self._settings, self._known = best.settings, best.known


def _yields(tails: Sequence[Tail], following: Tail, counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """For each number of guesses: the tokens of a step that verifies so many, and its slots, shared prefixes once."""
    matched = taken = 0
    nodes: set[Tail] = set()
    for count in counts:
        for tail in tails[taken:count]:
            guess = tail[: len(following)]
            if guess[0] == following[0]:  # else not a single token of it is right
                matched = max(matched, _agreeing(guess, following))
            for end in range(1, len(guess) + 1):
                nodes.add(guess[:end])
        taken = count
        yield 1 + matched, 1 + len(nodes)


def _agreeing(tail: Tail, following: Tail) -> int:
    """How many tokens two texts begin with in common."""
    pairs = enumerate(zip(tail, following, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(tail), len(following)))
