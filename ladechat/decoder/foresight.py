"""What the pool's likeliest guesses have foreseen of a text."""

from collections.abc import Sequence

from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, Tail

FORESEEN = (4, 8)
"""Where so many of the last tokens were foreseen, a guess counts as one of a longer context than the pool looks for."""


class Foresight:
    """How many of the last tokens the likeliest guesses of the pool have foreseen, in a row.

    A guess is followed through the tokens behind it, whether they were verified with it or not: to ask the pool anew at
    each of them would say the same.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Nothing is foreseen at the beginning of a text."""
        self.count = 0
        self._ahead: Tail = ()

    @property
    def ahead(self) -> Tail:
        """The next tokens, if the guess is right."""
        return self._ahead

    def look(self, guesses: Sequence[Guess]) -> None:
        """What the pool says now comes next."""
        self._ahead = guesses[0].tail if guesses else ()
        if not guesses:
            self.count = 0

    def take(self, tokens: Tail, steps: int = 1) -> None:
        """What came in so many steps."""
        ahead, self._ahead = self._ahead, self._ahead[len(tokens) :]
        beyond = steps > 1 and len(tokens) > len(ahead)
        if tokens[: len(ahead)] != ahead[: len(tokens)] or not ahead or beyond:
            self.count, self._ahead = 0, ()
            return
        # The token that a step emits behind a guess that was right to its end was not foreseen, nor was another.
        self.count += min(len(ahead), len(tokens))

    def missing(self, context: int) -> int:
        """How many more tokens must be foreseen for a guess to be as good as one of such a context."""
        return max(0, (0, *FORESEEN, 0)[context - LONGEST_CONTEXT] - self.count)

    def context(self, guess: Guess) -> int:
        """Of how many tokens the context of a guess is, or is as good as."""
        if guess.context < LONGEST_CONTEXT:
            return guess.context
        return LONGEST_CONTEXT + sum(self.count >= least for least in FORESEEN)
