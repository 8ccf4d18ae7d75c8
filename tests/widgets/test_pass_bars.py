"""Claims about the bars of a race: as wide as a pass took, as high as it gave tokens."""

import pytest

from ladechat.widgets.race import LaneHead, PassBars, Standing
from tests.widgets.hosting import hosted, lines
from tests.widgets.sample_steps import step, timing

STEPS = [
    step(["x"] * tokens, index=index, time=timing(4, step_ms=ms))
    for index, (tokens, ms) in enumerate([(1, 10.0), (3, 30.0)])
]


def test_a_bar_is_as_wide_as_its_pass_took() -> None:
    assert PassBars.of(STEPS, True, 80.0, 4).cells(8) == [(0, 1.0), (1, 3.0), (1, 3.0), (1, 3.0)]


def test_pass_by_pass_all_are_of_one_width() -> None:
    assert PassBars.of(STEPS, False, 4.0, 4).cells(8) == [(0, 1.0)] * 2 + [(1, 3.0)] * 2


def test_passes_that_share_a_cell_are_as_high_as_their_mean_over_time() -> None:
    ((which, tokens),) = PassBars.of(STEPS, True, 40.0, 4).cells(1)
    assert which == 1 and tokens == pytest.approx((1 * 10 + 3 * 30) / 40)


def test_equal_times_are_equal_widths_however_many_passes_they_are() -> None:
    many = [step(["x"], index=index, time=timing(1, step_ms=1.3)) for index in range(100)]
    few = [step(["x"] * 4, index=index, time=timing(9, step_ms=13.0)) for index in range(10)]
    lengths = {len(PassBars.of(steps, True, 200.0, 4).cells(30)) for steps in (many, few)}
    assert len(lengths) == 1
    assert PassBars.of(many, True, 0.0, 1).cells(5) == [] == PassBars.of([], True, 1.0, 1).cells(5)


@pytest.mark.parametrize("height", [1, 3, 4, 6, 9])
async def test_a_head_has_them_where_there_is_room(height: int) -> None:
    head = LaneHead("lookahead")
    head.standing = Standing("✓ 1st", ("4 tokens", "2 passes", "40 ms"), 1.0, PassBars.of(STEPS, True, 40.0, 3))
    async with hosted(head, 24, height) as (_, head):
        text = lines(head)
        full = [line for line in text if "█" in line]
        assert len(full) == max(0, height - 4)
        if full:
            assert [line.count("█") for line in full][-1] >= 18
