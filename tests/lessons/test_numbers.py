"""What scenes say of a pass and of its time."""

import re

import pytest
from msgspec.structs import replace

from ladechat import registry
from ladechat.lessons.numbers import _slots, judged
from ladechat.lessons.scene import BUSY, ONE_BY_ONE, Run, Task, compared, measured
from ladechat.lessons.scenes import SCENES
from ladechat.protocol import PassCost
from tests.decoder.table_runner import random_table
from tests.widgets.sample_steps import step, timing
from tests.widgets.test_pass_slots import passes


def run(tokens: int, passes: int, ms: float, plain_ms: float = 10.0) -> Run:
    """An answer at full speed, whose last pass brought all tokens but one for each pass before it."""
    pieces = [[" a"]] * (passes - 1) + [[" a"] * (tokens - passes + 1)]
    steps = [
        replace(step(each, index=index), timing=timing(12, step_ms=ms, plain_ms=plain_ms))
        for index, each in enumerate(pieces)
    ]
    return Run(turn=1, steps=steps, paced=0)


def test_the_slots_of_two_answers_are_compared_by_their_means() -> None:
    """It said "13 slots each" of passes of which all but the last few had 14."""
    before, after = run(60, 60, ms=20), run(60, 50, ms=20)
    after.steps[-1] = replace(after.steps[-1], timing=timing(2))
    assert compared(before, after) == "50 passes instead of 60, 12 slots on average instead of 12"


def test_a_longer_block_is_compared_by_whole_passes() -> None:
    """It said "12 slots on average instead of 6" of W = 12 and W = 5: blocks are cut where the answer ends."""
    before, after = (
        [replace(step([" a"]), timing=timing(min(w + 1, 60 - place))) for place in range(60)] for w in (5, 12)
    )
    card = next(card for card in SCENES[1].cards if isinstance(card, Task))
    assert "up to 13 slots instead of 6." in card.result(Run(1, steps=before), Run(2, steps=after))


def test_what_is_said_of_the_slots_of_a_pass_adds_up() -> None:
    shared = 0
    for w, n, g in [(5, 3, 0), (5, 3, 5), (3, 5, 4)]:
        runner = random_table(9, seed=9)
        for _, each in passes(runner, registry.lookahead(runner, w, n, g)):
            text = _slots(Run(turn=1, steps=[each]))
            found = re.search(r"(\d+) slots?: 1 for .*?, (\d+) for .*?, (\d+) more", text)
            assert found, text
            slots, window, more = map(int, found.groups())
            assert slots == 1 + window + more == each.timing.slots <= (n - 1) * (w + g)
            cells = re.search(r"window's (\d+) cells", text)
            shared += cells is not None and window < int(cells[1])
    assert shared, "cells that begin alike share a slot"


def test_the_speed_of_an_answer_is_its_tokens_a_pass_by_the_cost_of_a_pass() -> None:
    assert measured(run(60, 40, ms=20)).startswith("1.50 ÷ 2.00 (") and "≈ 0.8×" in measured(run(60, 40, ms=20))


@pytest.mark.parametrize("plain_ms", [26.7, 25.0])
def test_where_wide_passes_come_out_cheaper_than_plain_ones_no_time_is_given(plain_ms: float) -> None:
    """The lessons said that a plain pass took 26.7 ms and one of 6 slots 21."""
    assert measured(run(60, 40, ms=21.0, plain_ms=plain_ms)) == BUSY
    text = judged(run(60, 40, ms=21), run(60, 30, ms=21, plain_ms=plain_ms))
    assert BUSY in text and "fast." not in text.replace(BUSY, "") and " ms" not in text


@pytest.mark.parametrize(("ms", "known"), [(9.7, False), (14.0, False), (19.0, True), (40.0, True)])
def test_no_cost_is_given_that_the_chart_of_costs_contradicts(ms: float, known: bool) -> None:
    """The card said "1.07 ÷ 1.0 = 1.1×" of passes of 9 slots, beside a chart in which those cost 2.2."""
    answer = run(60, 56, ms=ms)
    assert answer.times is not None and answer.times.speedup is not None, "without the chart nothing is wrong with it"
    answer.costs = [PassCost(slots=1, ms=8.0), PassCost(slots=8, ms=12.0), PassCost(slots=16, ms=24.0)]
    assert (measured(answer) != BUSY) is known
    answer.costs = [PassCost(slots=1, ms=8.0), PassCost(slots=64, ms=9.0)]
    assert measured(answer) != BUSY, "a GPU, where slots cost hardly more"


def test_it_names_the_answer_that_has_no_times() -> None:
    """It said "no times. Try again later" beside the times of the answer that was asked for."""
    timed, disturbed = run(60, 40, ms=21), run(60, 40, ms=21, plain_ms=26.7)
    assert "The answer before has no times" in judged(disturbed, timed) and BUSY not in judged(disturbed, timed)
    assert BUSY in judged(timed, disturbed) and "before has" not in judged(timed, disturbed)
    assert BUSY in judged(disturbed, disturbed)


def test_passes_taken_one_by_one_say_nothing_about_time() -> None:
    paced = run(60, 40, ms=20)
    paced.paced = None
    assert measured(paced) == ONE_BY_ONE and ONE_BY_ONE in judged(paced, run(60, 30, ms=20))


@pytest.mark.parametrize("ms", [7.3, 8.9, 23.7, 51.2])
def test_the_gain_of_an_answer_is_the_quotient_of_the_numbers_beside_it(ms: float) -> None:
    found = re.match(
        r"(\d+) passes instead of (\d+), each ([\d.]+)× as long: ([\d.]+)×",
        judged(run(64, 44, ms=20, plain_ms=5), run(64, 58, ms=ms, plain_ms=5)),
    )
    assert found
    passes, before, dearer, gain = map(float, found.groups())
    assert abs(before / passes / dearer - gain) <= 0.0501


@pytest.mark.parametrize(
    ("passes", "ms", "verdict"), [(42, 72.0, "Slower"), (30, 20.0, "Faster"), (60, 10.0, "Faster"), (43, 20.0, "About")]
)
def test_an_answer_is_praised_by_the_clock_and_not_for_its_passes(passes: int, ms: float, verdict: str) -> None:
    """42 passes of 72 ms were praised over 43 of 13."""
    before = run(64, 43, ms=13.1 if verdict == "Slower" else 20)
    assert verdict in judged(before, run(64, passes, ms=ms))
