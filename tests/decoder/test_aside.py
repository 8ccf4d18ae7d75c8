"""What is put aside to be learnt from together: all of it comes back, in order, and soon enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.aside import RESTED_TOGETHER, TOGETHER, TOGETHER_SECONDS, Aside, Behind, Observed, Rested
from ladechat.decoder.picker import Rest
from ladechat.decoder.step import Step


def asked(seconds: float = 0.0001) -> Observed:
    """A step that asked the pool."""
    return Observed(Step((1,), (0.0,), ("model",), 3, 9, seconds / 2), seconds, [])


def rested(steps: int, each: float = 0.0001) -> Rested:
    """Steps that did not."""
    return Rested(Rest((1,) * steps, [each] * steps, 0.0), [])


@given(st.lists(st.sampled_from([asked(), rested(3), Behind(0.001)]), max_size=12))
def test_all_come_back_in_order_and_once(entries: list[Observed | Rested | Behind]) -> None:
    aside = Aside()
    for entry in entries:
        aside.put(entry)
    assert aside.take() == entries
    assert aside.take() == []
    assert not aside.enough(learnt=1000)


@pytest.mark.parametrize(("learnt", "together"), [(0, 1), (4, 2), (20, 10), (2 * TOGETHER, TOGETHER), (9999, TOGETHER)])
def test_so_many_steps_that_asked_are_enough_and_fewer_at_first(learnt: int, together: int) -> None:
    aside = Aside()
    for count in range(1, together + 1):
        aside.put(asked())
        assert aside.enough(learnt) == (count >= together)


@pytest.mark.parametrize(("learnt", "together"), [(0, 1), (4, 2), (2 * RESTED_TOGETHER, RESTED_TOGETHER)])
def test_so_many_steps_that_rested_are_enough_and_fewer_at_first(learnt: int, together: int) -> None:
    aside = Aside()
    for count in range(1, together + 1):
        aside.put(rested(1))
        assert aside.enough(learnt) == (count >= together)


def test_steps_that_take_long_are_enough_however_few_they_are() -> None:
    for entry in (asked(1.1 * TOGETHER_SECONDS), rested(2, 0.6 * TOGETHER_SECONDS)):
        aside = Aside()
        aside.put(entry)
        assert aside.enough(learnt=1000)


def test_what_was_timed_behind_a_rest_alone_is_not_waited_for() -> None:
    aside = Aside()
    aside.put(Behind(5.0))
    assert not aside.enough(learnt=1000)
