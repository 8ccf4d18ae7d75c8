"""The choice of W, N and G: it follows cost and yield, tries little, and never changes the text."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import Tail
from ladechat.decoder.step import Candidate, Limits, Origin, PoolSnapshot, Step
from ladechat.decoder.tuned import TunedDecoder
from ladechat.decoder.tuner import EXPLORED, GUESSES_ONLY, STAY, WITH_WINDOW, Tuner, _yields
from tests.tiny import VOCABULARY, demo_model, demo_prompt, plain, random_model, runner_for, tokens_of

PLAIN = GUESSES_ONLY[0]
LONGEST = PLAIN.ngram - 1

tails = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=LONGEST).map(tuple), max_size=8)


@given(tails, st.lists(st.integers(0, 2), min_size=LONGEST, max_size=LONGEST).map(tuple))
def test_what_guesses_would_have_yielded_is_what_their_tree_would_have(offered: list[Tail], following: Tail) -> None:
    counts = [settings.guesses for settings in GUESSES_ONLY]
    for count, (tokens, slots) in zip(counts, _yields(offered, following, counts), strict=True):
        tree = CandidateTree()
        for tail in offered[:count]:
            tree.add(tail, "prompt")
        node, accepted = -1, 0
        while accepted < LONGEST and (child := tree.child(node, following[accepted])) is not None:
            node, accepted = child, accepted + 1
        assert (tokens, slots) == (1 + accepted, 1 + len(tree))


class World:
    """A text of one token, again and again, whose pool knows how it goes on from a part of its places.

    Args:
        cost: the seconds of a pass of so many slots.
        known: the part of the places where the pool is right.
        window_adds: tokens that a step with a window emits more.
    """

    def __init__(self, cost: Callable[[int], float], known: float = 0.0, window_adds: float = 0.0) -> None:
        self.tuner = Tuner(cost)
        self._cost, self._known, self._adds = cost, known, window_adds
        self._dice = random.Random(0)
        self.used: Counter[LookaheadSettings] = Counter()
        self.tokens, self.seconds, self.tried_seconds = 0, 0.0, 0.0

    def run(self, steps: int) -> "World":
        for _ in range(steps):
            self._step()
        return self

    def _step(self) -> None:
        settings = self.tuner.settings
        right = self._dice.random() < self._known
        tail = (1,) * LONGEST if right else (2,) * LONGEST
        shown = Candidate(tail, "prompt", settings.guesses > 0, 0)
        tokens = 1 + (LONGEST if right and settings.guesses else 0)
        tokens += int(self._adds + self._dice.random()) if settings.window else 0
        slots = 1 + LONGEST * bool(settings.guesses) + (settings.ngram - 1) * settings.window
        seconds = self._cost(slots)
        pool = PoolSnapshot(1, 1, 1, 0, 1, (shown,))
        origins: tuple[Origin, ...] = tuple("model" for _ in range(tokens))
        step = Step((1,) * tokens, (0.0,) * tokens, origins, slots, 10, seconds, pool=pool)
        self.used[settings] += 1
        self.tokens += tokens
        self.seconds += seconds
        self.tuner.observe(step, seconds)


def flat(slots: int) -> float:
    return 0.01


def steep(slots: int) -> float:
    return 0.01 * slots


def test_where_every_slot_costs_it_decodes_plainly() -> None:
    world = World(steep, known=0.1, window_adds=0.5).run(500)
    assert world.used[PLAIN] > 490


def test_where_slots_are_free_it_takes_the_window_that_adds_most_or_as_much() -> None:
    world = World(flat, known=0.3, window_adds=1.0).run(600)
    last = world.tuner.settings
    assert last in WITH_WINDOW
    assert world.tokens / 600 > 0.9 * (1 + 0.3 * LONGEST + 1.0)


def test_guesses_without_a_window_are_taken_where_those_alone_pay() -> None:
    world = World(lambda slots: 0.01 + 0.001 * slots, known=0.6, window_adds=0.0).run(600)
    alone = sum(count for settings, count in world.used.items() if settings.guesses and not settings.window)
    assert alone > 450


def test_it_follows_a_text_that_changes() -> None:
    world = World(lambda slots: 0.01 + 0.003 * slots, known=0.9).run(300)
    assert world.tuner.settings.guesses
    world._known = 0.0
    world.run(300)
    assert world.tuner.settings == PLAIN


def test_windows_that_do_not_pay_take_little_of_the_time() -> None:
    world = World(lambda slots: 0.01 if slots < 6 else 0.012, window_adds=0.0).run(3000)
    windows = sum(count for settings, count in world.used.items() if settings.window)
    # One that is tried stays for `STAY` steps, so the last may go beyond the budget by that.
    assert 0 < windows * 0.012 <= EXPLORED * world.seconds + STAY * 0.012


def test_a_window_is_kept_for_some_steps() -> None:
    world = World(flat, window_adds=0.0)
    runs: list[int] = []
    before = world.tuner.settings
    for _ in range(500):
        world.run(1)
        if world.tuner.settings == before and before.window:
            runs[-1] += 1
        elif world.tuner.settings.window:
            runs.append(1)
        before = world.tuner.settings
    assert len(runs) > 1 and min(runs[:-1]) >= STAY


class Drawn:
    """Costs without any sense, so that settings change as often as they can."""

    measured = True

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def __call__(self, slots: int) -> float:
        return self._dice.random()

    def refresh(self) -> None: ...

    def observe(self, slots: int, seconds: float) -> None: ...


@pytest.mark.parametrize("seed", range(6))
def test_the_text_stays_that_of_plain_decoding(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(seed)
    prompt = [dice.randrange(3, VOCABULARY) for _ in range(dice.randint(1, 20))]
    decoder = TunedDecoder(LookaheadDecoder(runner_for(model)), Drawn(seed))
    for _ in range(2):
        steps = list(decoder.run(prompt, Limits(120)))
        assert tokens_of(steps) == plain(model, prompt, 120)


def test_all_kinds_of_settings_occur_and_the_text_stays() -> None:
    used: Counter[LookaheadSettings] = Counter()
    model = demo_model()
    prompt = demo_prompt("What is the n-gram pool?")
    decoder = TunedDecoder(LookaheadDecoder(runner_for(model)), Drawn(3))
    tokens: list[int] = []
    for step in decoder.run(prompt, Limits(150)):
        used[decoder.lookahead.settings] += 1
        tokens += step.tokens
    assert tokens == plain(model, prompt, 150)
    assert any(one.window for one in used) and any(not one.window for one in used)
