"""Pauses of what does not pay (exponential backoff)."""


class Backoff:
    """After some failures in a row a pause, after it another trial, and each pause is twice as long as the last.

    Args:
        trials: failures before the first pause.
        first: the length of that pause, in steps.
        longest: the length of a pause at most.
    """

    def __init__(self, trials: int, first: int, longest: int) -> None:
        self._trials, self._first, self._longest = trials, first, longest
        self._pause = 0
        self.succeed()

    @property
    def paused(self) -> bool:
        """Whether there is a pause now."""
        return self._pause > 0

    @property
    def ends(self) -> bool:
        """Whether one more failure begins a pause."""
        return self._left == 1

    def succeed(self) -> None:
        """It has paid: all is as at the beginning."""
        self._left, self._next = self._trials, self._first

    def fail(self, trials: int) -> None:
        """It has not paid. If that begins a pause, so many failures after it begin the next one."""
        self._left -= 1
        if not self._left:
            self._pause, self._next = self._next, min(2 * self._next, self._longest)
            self._left = trials

    def wait(self) -> None:
        """One step of a pause is over."""
        self._pause -= 1
