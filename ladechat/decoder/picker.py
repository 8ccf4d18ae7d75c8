"""Who decides, while a text is written, where the pool is asked and which of its guesses are verified."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, Tail
from ladechat.decoder.step import Step


class Pick(NamedTuple):
    """The first `number` guesses, cut to `length` tokens."""

    number: int
    length: int


NOTHING = Pick(0, 0)


class RestPlan(NamedTuple):
    """For how long the pool is not to be asked.

    Attributes:
        steps: of plain decoding that come next; with 0, a step that asks the pool does.
        foreseen: as soon as just these tokens have come, the rest is over; nothing shortens it where they are none.
    """

    steps: int
    foreseen: Tail = ()


NO_REST = RestPlan(0)


class Rest(NamedTuple):
    """Steps of plain decoding, one behind the other, that did not ask the pool.

    Attributes:
        tokens: that they emitted.
        passes: the seconds of each pass.
        besides: the seconds of all in them that was not their passes; of one step, a pause of the machine counts as one
            pass. What is done behind the last of them is left out: to ask the pool would not have saved it.
    """

    tokens: Tail
    passes: Sequence[float]
    besides: float


class RidePlan(NamedTuple):
    """For how many steps at most the pool's likeliest guess is verified, cut to `length` tokens, without a thought.

    A ride ends with the first step that had no guess, or one that was not all right.
    """

    steps: int
    length: int


NO_RIDE = RidePlan(0, 0)


class Ridden(NamedTuple):
    """A step of a ride, the guesses that the pool had for it, and the seconds that it took."""

    guesses: Sequence[Guess]
    step: Step
    seconds: float


class Pool(Protocol):
    """The pool, asked about a place of the text: by default its end.

    Behind a rest it has not learnt yet what that brought. It may be asked then about the place behind the first
    `place` tokens of the rest, and says what it would have said there, had it learnt nothing since the rest began.
    """

    def knows(self, context: int) -> bool:
        """Whether it has seen what followed the last `context` tokens of the text."""
        ...

    def known(self, context: int, places: Sequence[int]) -> Sequence[int]:
        """Those of these places in front of which it has seen the last `context` tokens, two or more, before."""
        ...

    def guesses(self, most: int, place: int | None = None) -> list[Guess]:
        """Its likeliest guesses."""
        ...


class Picks(Protocol):
    """Says which guesses a step verifies, instead of G."""

    def most(self) -> int:
        """How many guesses the pool should be asked for, at most G."""
        ...

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """Which of the guesses that the pool has this step should verify."""
        ...


class Likeliest:
    """Picks the first guess, of those behind the longest context alone, and cuts it to so many tokens."""

    def __init__(self, length: int) -> None:
        self._pick = Pick(1, length)

    def most(self) -> int:
        """See `Picks`."""
        return 1

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """See `Picks`."""
        return self._pick if guesses and guesses[0].context == LONGEST_CONTEXT else NOTHING


class Picker(Picks, Protocol):
    """Decides on guesses, step by step, or for several steps together."""

    def rests(self, pool: Pool) -> RestPlan:
        """What comes next. Called before a step that asks the pool, and before a rest.

        While there is a window, which moves on with every step, there is none.
        """
        ...

    def rested(self, rest: Rest, pool: Pool) -> None:
        """Take in what came of these steps."""
        ...

    def rides(self) -> RidePlan:
        """For how many steps the likeliest guess alone is verified. Called where there is no rest, before each step."""
        ...

    def rode(self, ridden: Sequence[Ridden]) -> None:
        """Take in what came of these steps, one or more."""
        ...
