"""Exponential backoff: pauses of an action that does not pay."""


class Backoff:
    """Pauses after some failures in a row, then tries again; each pause is one step more than twice the one before.

    Args:
        trials: failures before the first pause.
        first: the length of that pause, in steps.
        longest: the most steps of a pause.
    """

    def __init__(self, trials: int, first: int, longest: int) -> None:
        self._trials, self._first, self._longest = trials, first, longest
        self._pause = 0
        self.succeed()

    @property
    def paused(self) -> bool:
        """Whether it is in a pause."""
        return self._pause > 0

    @property
    def ends(self) -> bool:
        """Whether one more failure begins a pause."""
        return self._left == 1

    def succeed(self) -> None:
        """Record a success: reset to the initial state."""
        self._left, self._next = self._trials, self._first

    def fail(self, trials: int) -> None:
        """Record a failure. If it begins a pause, `trials` failures after that pause begin the next one."""
        self._left -= 1
        if not self._left:
            self._pause, self._next = self._next, min(2 * self._next + 1, self._longest)
            self._left = trials

    def wait(self) -> None:
        """Count one step of a pause."""
        self._pause -= 1
