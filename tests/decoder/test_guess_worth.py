"""What guesses are worth, and where the pool is asked: by what they yielded, and by what steps take."""

from collections import Counter
from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.guess_kind import ALIKE, FIRST_TOKEN, LATELY, LONGEST, Kind, Kinds
from ladechat.decoder.guess_worth import (
    ASKED_ANYWAY,
    LONGEST_RENEWED_SECONDS,
    LONGEST_REST,
    LOOKS_APART,
    NOT_ASKED_ANYWAY,
    REST_SECONDS,
    GuessWorth,
)
from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess
from ladechat.decoder.picker import NO_REST, Pick, Rest, RestPlan
from ladechat.decoder.step_times import KNOWN, OPEN_AGAIN

PLAIN = 0.010


class Seen:
    """A pool that knows so many of the last tokens everywhere, and guesses the same at each place."""

    def __init__(self, context: int, tail: tuple[int, ...] = (9,) * LONGEST) -> None:
        self._guess = Guess(tail, "prompt", max(1, context))
        self._context = context
        self.asked_about: list[int | None] = []

    def knows(self, context: int) -> bool:
        return context <= self._context

    def known(self, context: int, places: Sequence[int]) -> Sequence[int]:
        return places if self.knows(context) else []

    def guesses(self, most: int, place: int | None = None) -> list[Guess]:
        self.asked_about.append(place)
        return [self._guess] if self._context else []


def rest(count: int, each: float = PLAIN, besides: float = 0.0) -> Rest:
    """Steps of plain decoding."""
    return Rest((1,) * count, [each] * count, besides)


def take_in(worth: GuessWorth, rest: Rest) -> None:
    """That it was, and what it took."""
    worth.came_resting(rest)
    worth.rested(rest)


def asked(worth: GuessWorth, steps: int, pool: Seen) -> int:
    """Of so many steps, how many ask the pool. None of them brings anything, or takes anything besides its pass."""
    count = done = 0
    while done < steps:
        rests, foreseen = worth.rests(pool)
        if foreseen and set(foreseen) == {1}:
            rests = min(rests, len(foreseen))
        if rests:
            worth.look_back((1,) * rests, pool)
            take_in(worth, rest(rests))
        else:
            worth.came((1,))
        count += not rests
        done += rests or 1
    return count


def test_a_kind_of_guess_that_is_right_is_taken_and_one_that_is_not_is_left() -> None:
    worth = GuessWorth(lambda slots: 0.01 + 0.001 * slots)
    good, bad = Guess((1,) * LONGEST, "prompt", 2), Guess((2,) * LONGEST, "prompt", 1)
    for _ in range(60):
        worth.learn(worth.offered([good]), (1,) * LONGEST)
        worth.learn(worth.offered([bad]), (1,) * LONGEST)
        worth.took(1, 1, 0.011, 0.0)
    assert worth.pick(worth.offered([good, bad])) == Pick(1, LONGEST)
    assert worth.pick(worth.offered([bad])) == Pick(0, 0)
    assert worth.pick(worth.offered([])) == Pick(0, 0)


def test_a_token_is_worth_a_plain_step_also_behind_many_that_came_faster() -> None:
    """As at the end of an answer that repeats itself, where there is room for two tokens more."""
    worth = GuessWorth({1: 0.0010, 2: 0.0012, 3: 0.0015, 4: 0.0016, 8: 0.0019}.__getitem__)
    for _ in range(60):
        worth.learn(worth.offered([Guess((1,) * LONGEST, "accepted", 4)]), (1,) * LONGEST)
        worth.came((1,) * 8)
        worth.took(8, 8, 0.0019, 0.0)
    assert worth.pick(worth.offered([Guess((1, 1), "accepted", 4)])).number == 1


def test_what_is_picked_follows_what_is_learnt_and_what_passes_cost() -> None:
    cost = {"slot": 0.0005}
    worth = GuessWorth(lambda slots: 0.01 + cost["slot"] * slots + 0.1 * max(0, slots - 20))
    guess = Guess((1,) * LONGEST, "prompt", 2)
    for _ in range(60):
        worth.learn(worth.offered([guess]), (1,) * LONGEST)
    renew(worth)
    assert worth.pick(worth.offered([guess])) == Pick(1, LONGEST)
    assert worth.pick(worth.offered([guess]), beside=19) == Pick(0, 0)
    assert worth.pick(worth.offered([Guess((1,), "prompt", 2)])) == Pick(1, 3)  # the whole of it
    cost["slot"] = 0.05
    renew(worth)
    assert worth.pick(worth.offered([guess])) == Pick(0, 0)
    cost["slot"] = 0.0005
    renew(worth)
    assert worth.pick(worth.offered([guess])) == Pick(1, LONGEST)
    for _ in range(200):
        worth.learn(worth.offered([guess]), (2,) * LONGEST)
    renew(worth)
    assert worth.pick(worth.offered([guess])) == Pick(0, 0)


def renew(worth: GuessWorth) -> None:
    """What was worked out before is not kept for long."""
    plain = worth.times.plain()
    for _ in range(KNOWN + int(LONGEST_RENEWED_SECONDS / plain)):
        take_in(worth, rest(1, plain))
    worth.came((1,))
    worth.rests(Seen(0))


def test_a_step_with_guesses_is_charged_for_the_plain_ones_that_it_slows_down() -> None:
    worth = GuessWorth(lambda slots: 0.010 if slots == 1 else 0.012)
    for _ in range(60):
        worth.took(4, 2, 0.012, 0.0)
        for after in (0.015, 0.013, 0.011, *[0.010] * 9):
            take_in(worth, rest(1, after))
    renew(worth)
    assert worth.times.plain() == pytest.approx(0.010, rel=0.1)
    assert worth.times.seconds(4) == pytest.approx(0.012 + 2.0 * 0.002, rel=0.05)  # more than 2 is not believed


def test_what_is_assumed_to_be_lost_makes_guesses_and_asking_dearer() -> None:
    nothing = GuessWorth(lambda slots: 0.010 if slots == 1 else 0.014, lambda: 0.0)
    much = GuessWorth(lambda slots: 0.010 if slots == 1 else 0.014, lambda: 1.0)
    guess = Guess((1,) * LONGEST, "prompt", 2)
    for worth in (nothing, much):
        for number in range(60):  # seven tokens where it is right: 0.7 on average, less half an error
            worth.learn(worth.offered([guess]), (1 if number % 10 < 1 else 2,) * LONGEST)
        take_in(worth, rest(12))
        for _ in range(KNOWN):
            worth.took(1, 1, 0.011, 0.001)
        renew(worth)
    assert nothing.times.seconds(4) == pytest.approx(0.015)
    assert much.times.seconds(4) == pytest.approx(0.020)
    assert nothing.times.seconds(1) == pytest.approx(0.011)
    assert much.times.seconds(1) == pytest.approx(0.012)
    assert nothing.pick(nothing.offered([guess])).number == 1
    assert much.pick(much.offered([guess])).number == 0


def test_steps_with_guesses_one_behind_the_other_are_charged_nothing_more() -> None:
    worth = GuessWorth(lambda slots: 0.010 if slots == 1 else 0.012)
    for _ in range(12):
        worth.took(1, 1, 0.010, 0.0)
    for _ in range(5):
        for _ in range(60):
            worth.took(4, 2, 0.012, 0.0)
        take_in(worth, rest(1, 0.020))
        take_in(worth, rest(11))
    renew(worth)
    assert worth.times.seconds(4) == pytest.approx(0.012)


def test_to_ask_the_pool_is_charged_too_and_where_it_brings_less_hardly_a_step_asks() -> None:
    worth = GuessWorth(lambda slots: 0.010 + 0.001 * slots)
    never, sometimes = Guess((2,) * LONGEST, "prompt", 1), Guess((1,) * LONGEST, "prompt", 2)
    for _ in range(200):
        worth.learn(worth.offered([never]), (1,) * LONGEST)
        for right in (True, *[False] * 5):
            worth.learn(worth.offered([sometimes]), (int(right),) * LONGEST)
        worth.took(1, 1, 0.0115, 0.0005)
        take_in(worth, rest(1, 0.011))
    renew(worth)
    assert worth.rests(Seen(1)).steps > 0
    assert worth.rests(Seen(2)) == NO_REST
    for _ in range(200):
        worth.took(1, 1, 0.021, 0.010)
    renew(worth)
    assert worth.rests(Seen(2)).steps > 0
    assert asked(worth, 1000, Seen(2)) <= 1000 // ASKED_ANYWAY + 1


def test_the_first_steps_ask_and_then_one_in_many_at_least_does_and_one_does_not() -> None:
    asks_none, asks_all = GuessWorth(lambda slots: 0.010 * slots), GuessWorth(lambda slots: 0.010)
    for worth in (asks_none, asks_all):
        assert asked(worth, KNOWN, Seen(0)) == KNOWN
    for _ in range(100):
        asks_none.learn(asks_none.offered([Guess((2,) * LONGEST, "prompt", 4)]), (1,) * LONGEST)
    assert 1000 // ASKED_ANYWAY <= asked(asks_none, 1000, Seen(0)) <= 30
    assert asked(asks_all, 1000, Seen(1)) <= 1000 - 1000 // NOT_ASKED_ANYWAY + 1


@pytest.mark.parametrize(("seconds", "longest"), [(1e-4, 2 * LONGEST_REST), (4e-3, 25), (12e-3, 8), (0.5, 1)])
def test_the_pool_is_left_alone_for_a_short_time_only_however_long_steps_take(seconds: float, longest: int) -> None:
    worth = GuessWorth(lambda slots: seconds * slots)
    for context in range(1, LONGEST_CONTEXT + 1):
        for _ in range(60):
            worth.learn(worth.offered([Guess((2,) * LONGEST, "prompt", context)]), (1,) * LONGEST)
    renew(worth)
    assert worth.rests(Seen(0)) == RestPlan(longest)
    assert longest * seconds <= max(2 * REST_SECONDS, seconds)


def test_where_guesses_of_one_kind_are_right_those_of_others_are_expected_to_be() -> None:
    kinds = Kinds()
    before = {context: kinds(context).adds[0] for context in FIRST_TOKEN}
    for _ in range(20):
        kinds(3).learn(LONGEST, 0, LONGEST)
    kinds.compare()
    better = {context: kinds(context).adds[0] for context in FIRST_TOKEN}
    assert all(before[context] < better[context] < 1 for context in FIRST_TOKEN)
    assert better[1] < better[2] < better[4] < better[6]
    for _ in range(200):
        kinds(3).learn(LONGEST, 0, 0)
    kinds.compare()
    worse = {context: kinds(context).adds[0] for context in FIRST_TOKEN}
    assert all(0 < worse[context] < before[context] for context in (1, 2, 4, 5, 6))
    assert kinds(1, 1).first == Kind(1, 1, of_window=False).first
    assert kinds(1, 1).adds[0] < kinds(1, 1).first  # also of one that is new


@given(st.lists(st.integers(0, LONGEST), max_size=30))
def test_what_is_assumed_follows_what_is_seen_however_slowly_that_changes(rights: list[int]) -> None:
    often, once = Kinds(), Kinds()
    for right in rights:
        for kinds in (often, once):
            kinds(3).learn(LONGEST, 0, right)
        often.compare()
    once.compare()
    one, other = (kinds(1).adds[0] for kinds in (often, once))
    assert one / (1 - one) == pytest.approx(other / (1 - other), rel=2.1 * ALIKE)


@given(
    st.lists(st.integers(0, LONGEST), max_size=80), st.lists(st.sampled_from([0.05, 0.5, 1.0, 3.0, 40.0]), max_size=9)
)
def test_what_is_assumed_of_a_kind_does_not_add_up(rights: list[int], odds: list[float]) -> None:
    """Whatever was assumed before, only what is assumed last counts, and as much as one guess."""
    often, once = Kind(2, 0, of_window=False), Kind(2, 0, of_window=False)
    once.assume(odds[-1] if odds else 1.0)
    for index, right in enumerate(rights):
        if index < len(odds) - 1:
            often.assume(odds[index])
        for kind in (often, once):
            kind.learn(LONGEST, 0, right)
    often.assume(odds[-1] if odds else 1.0)
    assert often.adds == pytest.approx(once.adds)
    assert all(0 <= part <= 1 for part in often.adds)
    assert 0 <= often.right <= often.seen + 1e-9
    if len(rights) < LATELY:
        assert (often.right, often.seen) == pytest.approx((sum(right > 0 for right in rights), len(rights)))


def test_what_was_not_asked_for_is_judged_afterwards() -> None:
    """A rest of plain decoding went by what the pool knew: from then on it is asked."""
    worth = GuessWorth(lambda slots: 0.010 * (1 + 0.2 * (slots - 1)))
    wrong, right = Seen(LONGEST_CONTEXT, (2,) * LONGEST), Seen(LONGEST_CONTEXT, (1,) * LONGEST)
    for _ in range(60):
        worth.learn(worth.offered(wrong.guesses(1)), (1,) * LONGEST)
    renew(worth)
    assert asked(worth, 50, wrong) == 0
    for _ in range(60):
        for place, offer in worth.look_back((1,) * 14, right):
            assert place % LOOKS_APART == 0
            worth.learn(offer, (1,) * LONGEST)
        take_in(worth, rest(14))
    assert set(right.asked_about[-2:]) == {0, LOOKS_APART}
    renew(worth)
    assert asked(worth, 50, right) > 15


def test_one_pause_of_the_machine_does_not_end_guessing() -> None:
    worth = GuessWorth(lambda slots: 0.010 + 0.0005 * slots)
    good = Guess((1,) * LONGEST, "prompt", 2)
    for _ in range(30):
        worth.learn(worth.offered([good]), (1,) * LONGEST)
        worth.took(1, 1, 0.0105, 0.0)
    worth.took(8, 8, 0.5, 0.49)
    renew(worth)
    assert worth.pick(worth.offered([good])).number == 1


def test_what_guesses_cost_besides_is_open_again_after_a_long_time_without_any() -> None:
    worth = GuessWorth(lambda slots: 0.010)
    for _ in range(20):
        worth.took(8, 1, 0.014, 0.004)
    assert worth.times.seconds(8) == pytest.approx(0.014)
    for _ in range(OPEN_AGAIN // 10):
        worth.took(1, 1, 0.010, 0.0)
        take_in(worth, rest(9))
    renew(worth)
    assert worth.times.seconds(8) == pytest.approx(0.010)


def test_when_passes_become_faster_what_was_timed_is_forgotten_and_what_guesses_yield_is_not() -> None:
    cost = {"pass": 0.010}
    worth = GuessWorth(lambda slots: cost["pass"])
    good = Guess((1,) * LONGEST, "prompt", 2)
    for _ in range(50):
        worth.learn(worth.offered([good]), (1,) * LONGEST)
        worth.took(1, 1, 0.012, 0.002)
    assert worth.times.seconds(1) == pytest.approx(0.012)
    cost["pass"] = 0.002
    worth.forget_times()
    assert worth.times.seconds(1) == pytest.approx(0.002)
    assert worth.pick(worth.offered([good])) == Pick(1, LONGEST)


@pytest.mark.parametrize(("asking", "asks"), [(0.00001, True), (0.002, False)])
def test_where_stretches_begin_often_it_asks_at_each_step_if_that_takes_little(asking: float, asks: bool) -> None:
    """Ten plain steps and one in which a guess brings seven tokens, by turns; the pool never knows the last tokens."""
    worth, unknown = GuessWorth(lambda slots: PLAIN if slots == 1 else 1.2 * PLAIN), Seen(0)
    for _ in range(30):
        take_in(worth, rest(9))
        worth.took_behind(0.001)
        worth.came((1,))
        worth.took(1, 1, PLAIN + asking, asking)
        worth.came((1,) * 8)
        worth.took(8, 8, 1.2 * PLAIN + asking, asking)
    renew(worth)
    assert (worth.rests(unknown) == NO_REST) == asks


def test_what_comes_out_the_same_again_and_again_is_worked_out_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    worth = GuessWorth(lambda slots: PLAIN * slots)
    work_out = Mock(wraps=worth._renew)
    monkeypatch.setattr(worth, "_renew", work_out)
    known = list[int]()
    for _ in range(400):
        take_in(worth, rest(1, PLAIN))
        worth.rests(Seen(0))
        known.append(work_out.call_count)
    *steps, _ = Counter(known).values()  # so many steps each time
    assert steps == sorted(steps)
    assert steps[-1] * PLAIN == pytest.approx(LONGEST_RENEWED_SECONDS, abs=2 * PLAIN)
