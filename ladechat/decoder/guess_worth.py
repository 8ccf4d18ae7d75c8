"""Which of the pool's guesses are worth their slots, step by step.

A step that verifies guesses takes longer than a plain one, and may emit more. A token more is taken to save a plain
step, so that guesses are worth it where they are expected to add more tokens than plain steps in the time that their
slots take. In a stretch where all guesses are right it saves less; but such stretches end, and where few tokens are to
come, as at the end of an answer, none of them comes faster for what went before. What a guess adds is learnt without
trying it: the text that follows says how much of it was right.
"""

from collections.abc import Callable, Sequence

from ladechat.decoder.foresight import FORESEEN, Foresight
from ladechat.decoder.guess_kind import LENGTHS, LONGEST, Kind, Kinds
from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, Tail
from ladechat.decoder.picker import NO_REST, NO_RIDE, NOTHING, Pick, Pool, Rest, RestPlan, RidePlan
from ladechat.decoder.rest_length import RestLength
from ladechat.decoder.step import agreeing
from ladechat.decoder.step_times import KNOWN, StepTimes

MOST = 8
"""How many guesses a step verifies at most, where slots cost next to nothing. Of those further down hardly one is right
where none before it is."""

MARGIN, LEAST = 1.05, 0.005
"""So many times what their slots take must guesses be expected to save, and so many tokens they must bring."""

RENEWED_SECONDS, LONGEST_RENEWED_SECONDS = 0.1, 0.4
"""For so long, and shorter at first, it counts as known what a step of each size takes, where the pool is worth asking,
and which guess is worth its slots: to work it out takes its time too. Each time that nothing new came of it, twice as
long, up to the second of these."""

ASKED_ANYWAY, NOT_ASKED_ANYWAY = 256, 64
"""One step in so many at least asks the pool, and one does not, so that it is known what such a step takes."""

LOOKS_APART = 7
"""Behind a rest the pool is asked about the first place of it, and then about one in so many, where it knows the last
tokens in front of it."""

REST_SECONDS, LONGEST_REST = 0.05, 32
"""For so long, and for so many steps at most, the pool is not looked at: twice as long where nothing that it may say is
worth asking for. Behind them it is asked about one place in as many in any case, so that all kinds of guesses are
judged."""

RIDE_SECONDS, LONGEST_RIDE = 0.1, 16
"""For so long, and for so many steps at most, the likeliest guess is verified without a thought, where it was verified
alone, all of it was right, and so many of the last tokens were foreseen as the last of `FORESEEN` says."""

LONGEST_KIND = LONGEST_CONTEXT + len(FORESEEN)
"""The longest context that a guess can be as good as one of."""
NEVER = LONGEST_KIND + 1
"""A context that nothing has."""

ANY: Tail = (0,) * LONGEST
"""Of a guess only its length counts, where its kind is given."""

Offer = list[tuple[Tail, Kind]]
"""Guesses, and of which kind each was when the pool had it."""


class GuessWorth:
    """Learns what guesses yield, and picks those of a step.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
        lost: what is assumed of `Aftermath.lost`; None where nothing is.
    """

    def __init__(self, cost: Callable[[int], float], lost: Callable[[], float | None] = lambda: 0.0) -> None:
        self.times = StepTimes(cost, lost)
        """What steps take."""
        self._kinds = Kinds()
        self._foresight = Foresight()
        self._steps = self._last_asked = self._last_rest = self._last_sampled = 0
        self._context = self._looks_every = self._longest_rest = 1
        """Guesses behind fewer tokens than `_context` are not worth asking for; with 1, each step asks."""
        self._right = False
        """Whether the last step verified the likeliest guess alone, and all of it was right."""
        self.most = MOST
        """How many of the pool's guesses are worth looking at now."""
        self.forget_times()

    def begin(self) -> None:
        """Another text."""
        self._foresight.begin()
        self._right = False
        self.times.begin()

    def forget_times(self) -> None:
        """What passes cost has changed: only what guesses yield is still known."""
        self.times.forget()
        self._rest_length = RestLength()
        self._picks: dict[tuple[Kind, int, int], Pick] = {}  # that of no guess is not kept: one may soon be worth it
        self._known_since, self._renewed, self._since_renewed = self._steps, 0, 0.0
        self._renewed_for = RENEWED_SECONDS

    def rests(self, pool: Pool) -> RestPlan:
        """For how long the pool should not be asked: to ask, and to look what it knows, take time too."""
        self.renew()
        if self._steps >= self._last_rest + NOT_ASKED_ANYWAY:
            return RestPlan(1)
        due = self._last_asked + ASKED_ANYWAY - self._steps
        if self._steps < KNOWN or due <= 0:
            return NO_REST
        steps, foreseen = self._until_worth_asking(pool)
        return RestPlan(min(steps, due), foreseen)

    def _until_worth_asking(self, pool: Pool) -> RestPlan:
        """No rest where so many of the last tokens were seen in a row that guesses behind them have been worth it."""
        if self._context <= LONGEST_CONTEXT:
            return NO_REST if self._context == 1 or pool.knows(self._context) else RestPlan(self._looks_every)
        if self._context == NEVER:
            return RestPlan(self._looks_every)
        foresight, missing = self._foresight, self._foresight.missing(self._context)
        known = bool(foresight.ahead) or pool.knows(LONGEST_CONTEXT)
        if known and not missing:
            return NO_REST
        if known and not foresight.ahead:
            foresight.look(pool.guesses(1))
        foreseen = foresight.ahead[:missing]
        return RestPlan(max(self._looks_every, len(foreseen)), foreseen)

    def look_back(self, tokens: Tail, pool: Pool) -> list[tuple[int, Offer]]:
        """What the pool would have said behind the first of these tokens, which came of steps that did not ask it.

        Returns:
            Places, as numbers of tokens, and what it says there.
        """
        offers = list[tuple[int, Offer]]()
        places = range(0, len(tokens), LOOKS_APART)
        known = pool.known(LONGEST_CONTEXT, places)
        for place in places:
            sampled = self._steps + place >= self._last_sampled + self._longest_rest
            if sampled or place in known:
                offers.append((place, self.offered(pool.guesses(self.most, place))))
            if sampled:
                self._last_sampled = self._steps + place
            came = tokens[place : place + LOOKS_APART]
            self._foresight.take(came, len(came))
        return offers

    def renew(self) -> None:
        """Work out anew what steps take, and where the pool is worth asking, if that is due."""
        known_for = self._steps - self._known_since
        if known_for >= 3 * self._renewed or self._since_renewed >= self._renewed_for:
            self._renewed, self._since_renewed = max(1, known_for), 0.0
            before = self._context, self._looks_every, self.most
            self._renew()
            same = before == (self._context, self._looks_every, self.most)
            self._renewed_for = min(2 * self._renewed_for, LONGEST_RENEWED_SECONDS) if same else RENEWED_SECONDS

    def _renew(self) -> None:
        self.times.renew()
        self._picks.clear()
        self._kinds.compare()
        self._context = self._least_context()
        self.most = self._ranks_worth_a_look()
        fold = 2 if self._context == NEVER else 1
        self._longest_rest = max(1, min(fold * LONGEST_REST, round(fold * REST_SECONDS / self.times.plain())))
        asking, lost = self.times.asking(), self.times.lost
        best = self._rest_length.best(asking, self._longest_rest, lost) if asking else None
        if best is None:
            # The rarer it is that the pool is worth asking, the longer it is left alone.
            self._looks_every = min(8 ** (self._context - 1), self._longest_rest)
        else:
            self._looks_every = max(1, best)
            self._context = max(2, self._context) if best else 1

    def _least_context(self) -> int:
        asking = self.times.asking() / self.times.plain()
        prices = [(length, asking + self._price(1 + length)) for length in LENGTHS]
        for context in range(1, NEVER):
            kind = self._kinds(context)
            if any(kind.gain(length, length) > price for length, price in prices):
                return context
        return NEVER

    def _ranks_worth_a_look(self) -> int:
        """One at least; of the others those of which a single token may be worth its slot, behind a long context."""
        slot = self.times.longer(3) - self.times.longer(2)
        ranks = range(1, MOST)
        return next((rank for rank in ranks if self._kinds(LONGEST_KIND, min(rank, 3)).adds[0] < slot), MOST)

    def offered(self, guesses: Sequence[Guess]) -> Offer:
        """What the pool says may come now, the likeliest first."""
        self._foresight.look(guesses)
        return self.kinds_of(guesses)

    def kinds_of(self, guesses: Sequence[Guess]) -> Offer:
        """What these are worth where the pool has no others, the likeliest first."""
        context = self._foresight.context
        return [
            (guess.tail, self._kinds(context(guess), min(rank, 3), guess.source == "window"))
            for rank, guess in enumerate(guesses[:MOST])
        ]

    def rides(self) -> RidePlan:
        """For how many steps the likeliest guess is so sure to be right that nothing else need be looked at."""
        if not self._right or self._foresight.count < FORESEEN[-1]:
            return NO_RIDE
        number, length = self.pick([(ANY, self._kinds(LONGEST_KIND))])
        steps = min(LONGEST_RIDE, int(RIDE_SECONDS / self.times.seconds(1 + length)))
        return RidePlan(steps, length) if number and steps > 1 else NO_RIDE

    def pick(self, offer: Offer, beside: int = 0) -> Pick:
        """Those of a step that bring the most.

        Args:
            offer: what the pool says.
            beside: how many slots the pass has besides that of the last token and theirs: a window's.
        """
        if len(offer) != 1:
            return self._best(offer, beside) if offer else NOTHING
        ((tail, kind),) = offer  # as in a text that repeats itself, where it is mostly one like that before
        picked = self._picks.get((kind, len(tail), beside))
        if picked is None:
            picked = self._best(offer, beside)
            if picked.number:
                self._picks[kind, len(tail), beside] = picked
        return picked

    def _best(self, offer: Offer, beside: int) -> Pick:
        if sum(kind.hope() for _, kind in offer) < self._price(2 + beside, beside):
            return NOTHING
        best, picked = LEAST, NOTHING
        for length in LENGTHS:
            gained, slots, tails = 0.0, 1 + beside, list[Tail]()
            for count, (whole, kind) in enumerate(offer, start=1):
                tail = whole[:length]
                gained += kind.gain(len(tail), length)
                slots += slots_of(tail, tails)
                tails.append(tail)
                value = gained - self._price(slots, beside)
                if value > best:
                    best, picked = value, Pick(count, length)
        return picked

    def came(self, tokens: Tail, right: bool = False) -> None:
        """Take in what a step emitted that asked the pool.

        Args:
            tokens: what came.
            right: whether it asked the picker, verified the likeliest guess alone, and all of it was right.
        """
        self._right = right
        self._steps += 1
        self._last_asked = self._steps
        self._foresight.take(tokens)

    def learn(self, offer: Offer, following: Tail) -> None:
        """See how right guesses were, tried or not, by the `LONGEST` tokens that followed."""
        right_before = 0
        for tail, kind in offer:
            right = agreeing(tail, following)
            kind.learn(len(tail), right_before, right)
            right_before = max(right_before, right)

    def took(self, slots: int, tokens: int, seconds: float, besides: float) -> None:
        """Take in a step without a window that asked the pool.

        Args:
            slots: of its pass.
            tokens: how many it emitted.
            seconds: what it took in all.
            besides: what of that was not its pass.
        """
        if slots > 1:
            taken = self.times.guessed(slots, besides)
            self._rest_length.guessed(tokens, tokens * self.times.plain() - taken)
        else:
            self.times.asked(seconds - besides, besides)
            self._rest_length.plain(1)
        self._since_renewed += seconds

    def rode(self, slots: int, tokens: int, seconds: float, besides: float) -> None:
        """The same of a step in a ride."""
        if slots > 1:
            self._rest_length.guessed(tokens, tokens * self.times.plain() - self.times.ridden(slots, besides))
        else:
            self._rest_length.plain(1)
        self._since_renewed += seconds

    def took_with_window(self, seconds: float) -> None:
        """Take in a step with a window: it says nothing of others, but the time passes."""
        self._since_renewed += seconds
        self.times.begin()

    def came_resting(self, rest: Rest) -> None:
        """Take in that there were steps that did not ask the pool."""
        self._right = False
        self._steps += len(rest.passes)
        self._last_rest = self._steps
        self._since_renewed += sum(rest.passes) + rest.besides

    def rested(self, rest: Rest) -> None:
        """Take in what such steps took."""
        self._rest_length.plain(len(rest.passes))
        self.times.rested(rest)

    def took_behind(self, seconds: float) -> None:
        """Take in how long it took from the end of a rest until the next step began."""
        self._rest_length.took_behind(self.times.took_behind(seconds))

    def _price(self, slots: int, beside: int = 0) -> float:
        """How many tokens must be expected more of a step of so many slots than of one without guesses."""
        return MARGIN * self.times.longer(slots, beside)


def slots_of(tail: Tail, others: Sequence[Tail]) -> int:
    """How many slots a guess takes beside others: what it begins with in common with one of them is there already."""
    return len(tail) - max(agreeing(tail, other) for other in others) if others else len(tail)
