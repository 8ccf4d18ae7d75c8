"""What steps are expected to take, where weights live in a processor's cache and where they do not."""

import pytest

from ladechat.decoder.means import SETTLING
from ladechat.decoder.picker import Rest
from ladechat.decoder.step_times import StepTimes

COSTS = {1: 1.0, 4: 1.5}


def worked_with(lost: float | None) -> StepTimes:
    """Passes of one slot that take 1.2 times as long as was measured, and still longer behind others."""
    times = StepTimes(COSTS.__getitem__, lambda: lost)
    times.begin()
    for _ in range(20):
        times.rested(Rest((7,) * 20, [1.6] * SETTLING + [1.2] * (20 - SETTLING), besides=2.0))
        times.guessed(4, besides=0.1)
    return times


def test_passes_that_live_in_a_cache_are_compared_with_plain_ones_that_have_settled() -> None:
    times = worked_with(lost=0.3)
    assert times.lost > 0.3
    assert times.plain() == pytest.approx(1.3, abs=0.01)


def test_where_nothing_is_lost_plain_steps_are_timed_as_all_others_are() -> None:
    """From two kinds of measurements a step with guesses could look faster than one without."""
    times = worked_with(lost=None)
    assert times.lost == 0
    assert times.plain() == pytest.approx(1.1)
    assert times.longer(4) == pytest.approx(0.5 / 1.1)
