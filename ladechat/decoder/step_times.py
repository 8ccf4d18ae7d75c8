"""What steps without a window take: their passes, all that is done besides, and what the next ones lose for it."""

from collections.abc import Callable

from ladechat.decoder.means import REMEMBERED, Aftermath, Mean
from ladechat.decoder.picker import Rest

KNOWN = 3
"""So many times must have been seen for their mean to count."""

RESTS_REMEMBERED = 4 * REMEMBERED
"""There are many steps of plain decoding, and they are learnt from together."""

OPEN_AGAIN = 2000
"""After so many steps without a guess, what those with one take besides their pass is open again."""


class StepTimes:
    """Learns what steps take, and says what they are expected to.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
        lost: what is assumed of `Aftermath.lost`; None where nothing is.
    """

    def __init__(self, cost: Callable[[int], float], lost: Callable[[], float | None]) -> None:
        self._cost, self._lost = cost, lost
        self.forget()

    def forget(self) -> None:
        """What passes cost has changed at once."""
        self._besides = {"rest": Mean(RESTS_REMEMBERED), "plain": Mean(REMEMBERED), "guesses": Mean(REMEMBERED)}
        self._aftermath = Aftermath(self._lost)
        self._since_guesses = 0
        self._seconds: dict[int, float] = {}
        self._longer: dict[tuple[int, int], float] = {}

    def begin(self) -> None:
        """Something else was done, as to read a prompt: nobody knows what the next passes lose for it."""
        self._aftermath.begin()

    def renew(self) -> None:
        """What was worked out is worked out anew, when it is wanted."""
        self._seconds.clear()
        self._longer.clear()

    @property
    def lost(self) -> float:
        """The seconds that plain passes lose for each one of something else before them."""
        return self._aftermath.lost

    def guessed(self, slots: int, besides: float) -> float:
        """Take in a step that verified guesses.

        Args:
            slots: of its pass.
            besides: the seconds that were not its pass.

        Returns:
            The seconds that it counts as, with what the next ones lose for it.
        """
        return self._disturb(slots, self._learn("guesses", slots, besides))

    def ridden(self, slots: int, besides: float) -> float:
        """The same of a step in a ride, from which nothing is learnt of those that ask the picker: they take longer."""
        return self._disturb(slots, min(besides, self._cost(slots)))

    def _disturb(self, slots: int, besides: float) -> float:
        plain = self.plain()
        longer = max(0.0, self._cost(slots) + besides - plain)
        self._aftermath.disturb(longer)
        self._since_guesses = 0
        return plain + longer * (1 + self.lost)

    def asked(self, forward: float, besides: float) -> None:
        """Take in a step that asked the pool and verified nothing: the seconds of its pass, and all others."""
        usual = self._learn("plain", 1, besides)
        self._aftermath.disturb(max(0.0, usual - self._besides["rest"].value))
        self._aftermath.add([forward])
        self._since_guesses += 1

    def _learn(self, way: str, slots: int, besides: float) -> float:
        # A machine that pauses once must not have all such steps look dear from then on.
        usual = min(besides, self._cost(slots))
        self._besides[way].add(usual)
        return usual

    def rested(self, rest: Rest) -> None:
        """Take in steps that did not ask the pool."""
        count = len(rest.passes)
        self._besides["rest"].add(rest.besides / count, count)
        self._aftermath.add(rest.passes)
        self._since_guesses += count
        if self._since_guesses >= OPEN_AGAIN:
            self._besides["guesses"] = Mean(REMEMBERED)
            self._since_guesses = 0

    def took_behind(self, seconds: float) -> float:
        """Take in how long it took from the end of a rest until the next step began, and say as how much it counts."""
        usual = min(seconds, self._cost(1))  # a machine may pause
        self._aftermath.disturb(usual)
        return usual

    def asking(self) -> float:
        """The seconds that it takes to ask the pool; 0 before that is known."""
        asked, resting = self._besides["plain"], self._besides["rest"]
        if min(asked.weight, resting.weight) < KNOWN:
            return 0.0
        return max(0.0, asked.value - resting.value) * (1 + self.lost)

    def seconds(self, slots: int) -> float:
        """What a step of so many slots is expected to take that asks the pool, with what the next ones lose for it."""
        expected = self._seconds.get(slots)
        if expected is None:
            ways = ("guesses", "plain", "rest") if slots > 1 else ("plain", "rest")
            known = next((self._besides[way] for way in ways if self._besides[way].weight >= KNOWN), Mean(1))
            plain, own = self.plain(), self._plain_pass() if slots == 1 else self._cost(slots)
            longer = own + known.value - plain
            expected = self._seconds[slots] = plain + longer + max(0.0, longer) * self.lost
        return expected

    def longer(self, slots: int, beside: int = 0) -> float:
        """By how many steps of plain decoding one of so many slots takes longer than one without guesses.

        Args:
            slots: in all.
            beside: those of a window.
        """
        longer = self._longer.get((slots, beside))
        if longer is None:
            # Behind a step with a window comes none of plain decoding, which would be slower.
            seconds = self._cost if beside else self.seconds
            longer = self._longer[slots, beside] = (seconds(slots) - seconds(1 + beside)) / self.plain()
        return longer

    def plain(self) -> float:
        """The seconds that a step of plain decoding is expected to take, which does not ask the pool."""
        resting = self._besides["rest"]
        return self._plain_pass() + (resting if resting.weight >= KNOWN else self._besides["plain"]).value

    def _plain_pass(self) -> float:
        settled = self._aftermath.settled
        # Where nothing is lost, a plain pass is timed as larger ones are: two kinds of measurements do not compare.
        return self._cost(1) if self._lost() is None or settled.weight < KNOWN else settled.value
