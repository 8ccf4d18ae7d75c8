"""The one way to wait in a test: for what an action brings, and never for time."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.pilot import Pilot

PATIENCE_SECONDS = 150
MOST_PATIENCE_SECONDS = 600
"""Less than a test may take (`timeout` in pyproject.toml), so that it says what it has waited for."""

PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.1
"""Between two looks: the longer it takes, the longer they are, so that a long wait costs little."""

Shows = Callable[[], object]
"""What a failure says in addition: a screen, a log."""


class brings:  # noqa: N801 – it reads as what it does: `with brings(condition): action`
    """Check that a condition does not hold yet, do what is inside, and wait until it holds.

    A condition that holds before the action says nothing of the action: the test would go on too early, on some
    machines and not on others. So that is an error.

        async with brings(lambda: stage.prompt == "", pilot):
            await pilot.press("enter")

    Without `async` it waits for threads and processes.

    Args:
        condition: is true when what the action must bring is there. It may look for a widget that is not there yet.
        pilot: of the app that has to go on meanwhile, if there is one. It is idle when the wait is over.
        shows: what a failure says in addition. With a pilot it says what is on the screen anyway.

    Raises:
        AssertionError: the condition held before, or it did not come true.
    """

    def __init__(
        self, condition: Callable[[], object], pilot: Pilot[Any] | None = None, shows: Shows | None = None
    ) -> None:
        self._condition = condition
        self._pilot = pilot
        self._shows = shows

    def __enter__(self) -> None:
        assert not _holds(self._condition), "holds before anything was done: wait for something else"

    def __exit__(self, failure: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if failure is None:
            wait_for(self._condition, self._shows)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, failure: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if failure is None:
            await until(self._condition, self._pilot, self._shows)


_Brings = brings


async def press(pilot: Pilot[Any], *keys: str, brings: Callable[[], object]) -> None:
    """Press keys, and wait for what they bring: what did not hold before, as `brings` has it."""
    async with _Brings(brings, pilot):
        await pilot.press(*keys)


async def act(pilot: Pilot[Any], action: Callable[[], object], *, brings: Callable[[], object]) -> None:
    """Do something, as of an engine or a widget, and wait for what it brings."""
    async with _Brings(brings, pilot):
        action()


def patience() -> float:
    """Return the seconds until something that must come is given up: more where programs share the processor.

    It only ends a wait: a test that passes never takes it. With three programs for each core an engine is silent for
    20 s, while it imports its libraries.
    """
    programs_per_core = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(PATIENCE_SECONDS * max(1.0, programs_per_core), MOST_PATIENCE_SECONDS)


def wait_for(condition: Callable[[], object], shows: Shows | None = None) -> None:
    """Wait until a thread or a process has made the condition true. Use `brings` where the test itself acts."""
    deadline, pause = time.monotonic() + patience(), PAUSE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, _failure(None, shows)
        time.sleep(pause)
        pause = min(pause * 1.1, LONGEST_PAUSE_SECONDS)


async def until(condition: Callable[[], object], pilot: Pilot[Any] | None = None, shows: Shows | None = None) -> None:
    """Let other tasks, and the app, go on until the condition is true. Use `brings` where the test itself acts."""
    deadline, pause = time.monotonic() + patience(), PAUSE_SECONDS
    while not _holds(condition):
        assert time.monotonic() < deadline, _failure(pilot, shows)
        assert pilot is None or pilot.app._exception is None, "the app failed"
        await asyncio.sleep(pause)
        pause = min(pause * 1.1, LONGEST_PAUSE_SECONDS)
    if pilot:
        with contextlib.suppress(ScreenStackError):  # an app that has ended draws nothing
            await pilot.pause()


def _holds(condition: Callable[[], object]) -> object:
    """Return what the condition says; a widget that is not there yet is not as it should be."""
    try:
        return condition()
    except (NoMatches, ScreenStackError):
        return False


def _failure(pilot: Pilot[Any] | None, shows: Shows | None) -> str:
    """Return what a wait that is given up says."""
    said = [] if shows is None else [str(shows())]
    if pilot is not None and pilot.app.screen_stack:
        said += [strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips()]
    return "\n".join(["never came true", *said])
