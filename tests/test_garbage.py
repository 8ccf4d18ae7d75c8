"""Garbage collection: no pause grows with the conversation, and nothing is in memory for ever."""

import gc
import weakref
from collections.abc import Callable

import pytest

from ladechat.garbage import collect_everything, collect_rarely, collect_what_is_new, free_what_was_closed
from ladechat.widgets.flow import Ink
from ladechat.widgets.transcript.block import Block

pytestmark = pytest.mark.usefixtures("garbage_as_before")


class Circle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_looked_through_once_is_not_looked_through_again() -> None:
    collect_what_is_new()
    conversation = [[number] for number in range(50_000)]
    gc.collect()
    assert len(gc.get_objects()) < len(conversation) / 10
    new = weakref.ref(Circle())
    gc.collect()
    assert new() is None, "what is new is still looked at"


@pytest.mark.parametrize("collect", [collect_rarely, collect_everything])
def test_what_becomes_garbage_after_it_was_left_out_is_freed_by_a_later_call(collect: Callable[[], None]) -> None:
    circle = Circle()
    collect()
    gone = weakref.ref(circle)
    del circle
    gc.collect()
    assert gone() is not None, "it is left out"
    collect()
    assert gone() is None


def test_what_was_closed_is_freed_where_the_app_leaves_out_what_is_old() -> None:
    collect_what_is_new()
    circle = Circle()
    gc.collect()
    gone = weakref.ref(circle)
    del circle
    free_what_was_closed()
    assert gone() is None


def test_lines_of_a_conversation_are_not_looked_through() -> None:
    gc.collect()
    before = len(gc.get_objects())
    block = Block("model", "m", 40)
    block.append([(f"word{number} ", Ink("step", 1, number)) for number in range(2_000)])
    for _ in range(3):  # tuples of what is left out are left out from the next time on
        gc.collect()
    assert len(block.lines) > 200 and len(gc.get_objects()) - before < 50
