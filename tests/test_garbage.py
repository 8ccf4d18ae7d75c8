"""Garbage collection in the app: no pause grows with the conversation."""

import gc
from collections.abc import Iterator

import pytest

from ladechat.garbage import collect_what_is_new


@pytest.fixture
def as_before() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.usefixtures("as_before")
def test_what_was_looked_through_once_is_not_looked_through_again() -> None:
    collect_what_is_new()
    conversation = [[number] for number in range(50_000)]
    gc.collect()
    assert len(gc.get_objects()) < len(conversation) / 10
    garbage: list[object] = []
    garbage.append(garbage)
    del garbage
    assert gc.collect() >= 1, "what is new is still looked at"
