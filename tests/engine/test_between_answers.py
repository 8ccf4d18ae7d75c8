"""What an engine does between two answers: what an earlier turn has left is freed."""

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from ladechat.engine import server
from ladechat.engine.server import Engine
from ladechat.garbage import collect_rarely
from ladechat.protocol import Stop


class Circle:
    """Refers to itself, as a decoder does whose drafters know it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("garbage_as_before")
def test_what_was_in_use_between_two_answers_is_freed_when_it_no_longer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "gc", gc)
    service: Any = SimpleNamespace(
        texts=SimpleNamespace(learn=lambda _: iter(())), loaded=SimpleNamespace(vocabulary=0), warm_start=None
    )
    inbox: Any = SimpleNamespace(wait=Stop, poll=lambda: None)
    stream: Any = None
    collect_rarely()
    engine = Engine(service, stream, inbox)
    circle = Circle()
    engine._next()
    gone = weakref.ref(circle)
    del circle
    engine._next()
    assert gone() is None
