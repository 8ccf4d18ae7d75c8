"""The choice of W, N and G: it follows cost and yield, tries little, and never changes the text."""

import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence

import pytest

from ladechat.decoder.guess_kind import LONGEST
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import Guess
from ladechat.decoder.picker import NO_REST, NOTHING, Pick, Rest, RestPlan
from ladechat.decoder.step import Limits, Origin, Step, WindowSnapshot
from ladechat.decoder.tuned import TunedDecoder
from ladechat.decoder.tuner import EXPLORED, STAY, WITHOUT_WINDOW, Tuner
from ladechat.decoder.window_worth import WITH_WINDOW
from tests.tiny import VOCABULARY, demo_model, demo_prompt, plain, random_model, runner_for, tokens_of


class World:
    """A text of one token, again and again, whose pool knows how it goes on from a part of its places.

    Args:
        cost: the seconds of a pass of so many slots.
        known: the part of the places where the pool is right.
        window_adds: tokens that a step with a window emits more.
        seed: of where the pool is right.
        by_window: whether the pool is right only with a window, and by what it brought.
    """

    def __init__(
        self,
        cost: Callable[[int], float],
        known: float = 0.0,
        window_adds: float = 0.0,
        seed: int = 0,
        by_window: bool = False,
    ) -> None:
        self.tuner = Tuner(cost)
        self._cost, self._known, self._adds = cost, known, window_adds
        self._dice, self._by_window = random.Random(seed), by_window
        self.used: Counter[LookaheadSettings] = Counter()
        self.tokens, self.seconds, self.guessing, self.asked = 0, 0.0, 0, 0
        self._offers: list[Guess] = []

    def run(self, steps: int) -> "World":
        end = self.used.total() + steps
        while self.used.total() < end:
            self._offers = [self._offer()]
            rests, foreseen = NO_REST if self.tuner.settings.window else self.tuner.rests(self)
            if foreseen and set(foreseen) == {1}:
                rests = min(rests, len(foreseen))
            if rests:
                self._plain_steps(min(rests, end - self.used.total()))
            else:
                self._step(self._offers[0])
        return self

    def knows(self, context: int) -> bool:
        return bool(self.known(context, [0]))

    def known(self, context: int, places: Sequence[int]) -> Sequence[int]:
        return [place for place in places if context <= self._offers[place].context]

    def guesses(self, most: int, place: int | None = None) -> list[Guess]:
        return [self._offers[place or 0]]

    def _offer(self) -> Guess:
        right = self._dice.random() < self._known and (bool(self.tuner.settings.window) or not self._by_window)
        return Guess((1,) * LONGEST if right else (2,) * LONGEST, "window" if self._by_window else "prompt")

    def _plain_steps(self, count: int) -> None:
        self._offers += [self._offer() for _ in range(count - 1)]
        self.tokens += count
        self.seconds += count * self._cost(1)
        self.used[self.tuner.settings] += count
        self.tuner.rested(Rest((1,) * count, [self._cost(1)] * count, 0.0), self)

    def _step(self, guess: Guess) -> None:
        settings = self.tuner.settings
        picked = self.tuner.pick([guess])
        length = min(picked.length, LONGEST) if picked.number else 0
        tokens = 1 + length * (guess.tail[0] == 1)
        tokens += int(self._adds + self._dice.random()) if settings.window else 0
        slots = 1 + length + (settings.ngram - 1) * settings.window
        seconds = self._cost(slots)
        origins: tuple[Origin, ...] = tuple("model" for _ in range(tokens))
        window = WindowSnapshot((), ()) if settings.window else None
        step = Step((1,) * tokens, (0.0,) * tokens, origins, slots, 10, seconds, window=window)
        self.used[settings] += 1
        self.guessing += length > 0
        self.tokens += tokens
        self.seconds += seconds
        self.asked += 1
        self.tuner.observe(step, seconds)


class NothingKnown:
    """A pool that has never seen anything."""

    def knows(self, context: int) -> bool:
        return False

    def known(self, context: int, places: Sequence[int]) -> Sequence[int]:
        return []

    def guesses(self, most: int, place: int | None = None) -> list[Guess]:
        return []


def flat(slots: int) -> float:
    return 0.01


def steep(slots: int) -> float:
    return 0.01 * slots


def test_every_rest_is_learnt_from_once_and_all_of_them_when_the_text_is_over() -> None:
    world, passes, put_aside = World(steep), list[float](), 0
    for number in range(1, 30):
        rest = Rest((1,) * number, [0.00001 * number] * number, 0.0)
        learnt = world.tuner.rested(rest, NothingKnown())
        put_aside += not learnt
        passes += [seconds for one in learnt for seconds in one.passes]
        world.tuner.took_behind(0.0001)
    assert passes, "nothing is learnt before the end"
    assert put_aside, "they are learnt from one by one"
    passes += [seconds for one in world.tuner.end() for seconds in one.passes]
    assert passes == [0.00001 * number for number in range(1, 30) for _ in range(number)]
    assert not world.tuner.end()


@pytest.mark.parametrize("stopped", [1, 7, 40])
def test_nothing_is_left_to_learn_when_a_text_is_over_or_was_stopped(stopped: int) -> None:
    decoder = TunedDecoder(LookaheadDecoder(runner_for(demo_model())), Steep())
    steps = decoder.run(demo_prompt("What is the window?"), Limits(40))
    for _ in range(stopped):
        next(steps)
    assert isinstance(steps, Generator)
    steps.close()
    assert not decoder.tuner.end()


def test_where_every_slot_costs_it_decodes_plainly() -> None:
    world = World(steep, known=0.1, window_adds=0.5).run(500)
    assert world.guessing < 10 and not any(settings.window for settings in world.used)


def test_where_slots_are_free_it_takes_a_window() -> None:
    world = World(flat, known=0.3, window_adds=2.0).run(900)
    assert world.tuner.settings in WITH_WINDOW


def test_a_window_is_kept_as_long_as_it_adds_tokens_and_no_longer() -> None:
    def slowly(slots: int) -> float:
        return 0.01 + 0.0001 * slots

    world = World(slowly, known=0.05, window_adds=1.0).run(300)
    used = Counter(world.used)
    world.run(3000)
    assert 0 < world.used[WITHOUT_WINDOW] - used[WITHOUT_WINDOW] < 300  # it is left out for a while once in 1,000 steps
    world._adds = 0.0
    world.run(600)
    used = Counter(world.used)
    world.run(400)
    assert world.used[WITHOUT_WINDOW] - used[WITHOUT_WINDOW] > 260


@pytest.mark.parametrize("known", [0.3, 0.7, 1.0])
def test_a_window_is_not_praised_for_what_guesses_bring_when_a_text_becomes_easier(known: float) -> None:
    world = World(lambda slots: 0.01 + 0.0001 * slots).run(40)
    assert world.tuner.settings.window  # what is hoped for is worth trying where slots cost so little
    world._known = known
    world.run(150)
    used = Counter(world.used)
    world.run(1000)
    assert world.used[WITHOUT_WINDOW] - used[WITHOUT_WINDOW] > 900


def test_guesses_that_a_window_brought_are_to_its_credit() -> None:
    world = World(lambda slots: 0.01 + 0.0001 * slots, known=0.5, by_window=True).run(300)
    used = Counter(world.used)
    world.run(500)
    assert world.used[WITHOUT_WINDOW] - used[WITHOUT_WINDOW] < 50
    assert not world.tuner.exploring  # it is known to pay


def test_where_a_window_is_free_guesses_are_picked_beside_it() -> None:
    world = World(lambda slots: 0.01 if slots < 40 else 0.1, known=0.5, window_adds=1.0).run(300)
    guessing, steps = world.guessing, world.used.total()
    world.run(200)
    assert world.tuner.settings in WITH_WINDOW
    assert world.guessing - guessing > 0.95 * (world.used.total() - steps)


def test_guesses_without_a_window_are_taken_where_those_alone_pay() -> None:
    world = World(lambda slots: 0.01 + 0.001 * slots, known=0.6, window_adds=0.0).run(600)
    assert world.guessing > 500
    assert world.tokens / world.seconds > 1.5 / 0.011


def test_it_follows_a_text_that_changes() -> None:
    world = World(lambda slots: 0.01 + 0.003 * slots, known=0.9).run(300)
    assert world.guessing > 270
    world._known = 0.0
    world.run(100)
    before = world.guessing
    world.run(200)
    assert world.guessing - before < 10


@pytest.mark.parametrize("known", [0.0, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("price", [0.0, 0.03, 0.1, 0.3])
def test_it_is_hardly_ever_slower_than_the_better_of_never_and_always(known: float, price: float) -> None:
    def cost(slots: int) -> float:
        return 0.01 * (1 + price * (slots - 1))

    worlds = [World(cost, known=known, seed=seed).run(1500) for seed in range(6)]
    always = (1 + known * LONGEST) / cost(1 + LONGEST)
    reached = sum(world.tokens for world in worlds) / sum(world.seconds for world in worlds)
    assert reached > 0.93 * max(1 / cost(1), always)


def test_windows_that_do_not_pay_take_little_of_the_time() -> None:
    world = World(lambda slots: 0.01 if slots < 4 else 0.012, window_adds=0.0).run(3000)
    windows = sum(count for settings, count in world.used.items() if settings.window)
    first = len(WITH_WINDOW) * STAY  # as much as is hoped for before any was tried
    assert 0 < (windows - first) * (0.012 - 0.010) <= EXPLORED * world.seconds


def test_where_guesses_are_always_right_hardly_a_window_is_tried() -> None:
    world = World(lambda slots: 0.01 + 0.0003 * slots, known=1.0).run(1000)
    assert sum(count for settings, count in world.used.items() if settings.window) < 50
    assert world.tokens > 900 * LONGEST


def test_guesses_are_judged_by_the_text_that_they_were_offered_for() -> None:
    tuner = Tuner(lambda slots: 0.01 + 0.002 * slots)
    guess = Guess((1,) * LONGEST, "prompt")

    def offer_then(token: int, *, in_another_text: bool) -> None:
        step = Step((token,), (0.0,), ("model",), 1, 10, 0.012)
        tuner.pick([guess])
        tuner.observe(step, 0.012)
        if in_another_text:
            tuner.end()
            tuner.begin()
        for _ in range(2 * LONGEST):
            tuner.observe(step, 0.012)
        tuner.pick([])
        tuner.observe(step, 0.012)

    for _ in range(30):
        offer_then(1, in_another_text=False)
    for _ in range(60):
        offer_then(9, in_another_text=True)
    between_steps = World(lambda _: 0.01).run(1)  # where what is taken as known is worked out anew, now and then
    tuner.rests(between_steps)
    assert tuner.pick([guess]) == Pick(1, LONGEST)
    for _ in range(200):
        offer_then(9, in_another_text=False)
    tuner.rests(between_steps)
    assert tuner.pick([guess]) == NOTHING


def test_a_window_is_kept_for_some_steps() -> None:
    world = World(lambda slots: 0.01 if slots < 6 else 0.012)
    runs: list[int] = []
    before = world.tuner.settings
    for _ in range(4000):
        world.run(1)
        if world.tuner.settings == before and before.window:
            runs[-1] += 1
        elif world.tuner.settings.window:
            runs.append(1)
        before = world.tuner.settings
    assert len(runs) > 1 and min(runs[:-1]) >= STAY


class Drawn:
    """Costs without any sense, so small that all may be tried: settings change as often as they can."""

    measured, lost = True, 0.5

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def __call__(self, slots: int) -> float:
        return 1e-6 * self._dice.random()

    def refresh(self, rounds: int) -> bool:
        assert rounds == 1
        return self._dice.random() < 0.1

    def observe(self, slots: int, *seconds: float) -> None: ...


@pytest.mark.parametrize("seed", range(6))
def test_the_text_stays_that_of_plain_decoding(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(seed)
    prompt = [dice.randrange(3, VOCABULARY) for _ in range(dice.randint(1, 20))]
    decoder = TunedDecoder(LookaheadDecoder(runner_for(model)), Drawn(seed))
    for _ in range(2):
        steps = list(decoder.run(prompt, Limits(120)))
        assert tokens_of(steps) == plain(model, prompt, 120)


class Steep:
    """Costs with which no window pays."""

    measured, lost = True, 0.0

    def __call__(self, slots: int) -> float:
        return 0.01 * slots

    def refresh(self, rounds: int) -> bool:
        return False

    def observe(self, slots: int, *seconds: float) -> None: ...


def test_settings_assigned_in_mid_answer_bring_no_window_that_the_tuner_has_not_chosen() -> None:
    """All but W, N and G may change, and they are assigned together."""
    decoder = TunedDecoder(LookaheadDecoder(runner_for(demo_model())), Steep())
    slots = []
    for number, step in enumerate(decoder.run(demo_prompt("What is the window?"), Limits(80))):
        slots.append(step.slots)
        decoder.lookahead.settings = LookaheadSettings(40, 4, 9, pool_prompt=number % 2 == 0)
    assert len(slots) > 20 and max(slots) < 3 * 40


def test_all_kinds_of_settings_occur_and_the_text_stays() -> None:
    used: Counter[LookaheadSettings] = Counter()
    model = demo_model()
    prompt = demo_prompt("What is the n-gram pool?")
    decoder = TunedDecoder(LookaheadDecoder(runner_for(model)), Drawn(3))
    expected = plain(model, prompt, 150)
    for _ in range(8):  # what is tried hangs on dice, and on what steps really take
        tokens: list[int] = []
        for step in decoder.run(prompt, Limits(150)):
            used[decoder.lookahead.settings] += 1
            tokens += step.tokens
        assert tokens == expected
    assert any(one.window for one in used) and any(not one.window for one in used)


def test_what_lies_between_two_answers_is_not_done_behind_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = TunedDecoder(LookaheadDecoder(runner_for(random_model(1))), Steep())
    told: list[float] = []
    monkeypatch.setattr(decoder.tuner, "took_behind", told.append)
    monkeypatch.setattr(decoder.tuner, "rests", lambda _pool: RestPlan(7))
    clock = time.perf_counter
    for answer in range(3):
        monkeypatch.setattr(time, "perf_counter", lambda later=1000.0 * answer: clock() + later)
        *_, last = decoder.run([5, 6, 7, 8 + answer], Limits(60))
        assert last.pool is not None and not last.pool.asked  # it ended in a rest
    assert told and max(told) < 100
