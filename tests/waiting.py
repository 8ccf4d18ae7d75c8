"""The one way to wait in a test: for what an action brings, and never for time."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from textual.pilot import Pilot

PATIENCE_SECONDS = 150
"""Until something that must come is given up. It only ends a wait: a test that passes never takes it."""

PAUSE_SECONDS = 0.01
"""Between two looks."""


class brings:  # noqa: N801 – it reads as what it does: `with brings(condition): action`
    """Check that a condition does not hold yet, do what is inside, and wait until it holds.

    A condition that holds before the action says nothing of the action: the test would go on too early, on some
    machines and not on others. So that is an error.

        async with brings(lambda: stage.prompt == "", pilot):
            await pilot.press("enter")

    Without `async` it waits for threads and processes.

    Args:
        condition: is true when what the action must bring is there.
        pilot: of the app that has to go on meanwhile, if there is one. It is idle when the wait is over.

    Raises:
        AssertionError: the condition held before, or it did not come true.
    """

    def __init__(self, condition: Callable[[], object], pilot: Pilot[Any] | None = None) -> None:
        self._condition = condition
        self._pilot = pilot

    def __enter__(self) -> None:
        assert not self._condition(), "holds before anything was done: wait for something else"

    def __exit__(self, failure: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if failure is None:
            wait_for(self._condition)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, failure: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if failure is None:
            await until(self._condition, self._pilot)


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a thread or a process has made the condition true. Use `brings` where the test itself acts."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        time.sleep(PAUSE_SECONDS)


async def until(condition: Callable[[], object], pilot: Pilot[Any] | None = None) -> None:
    """Let other tasks, and the app, go on until the condition is true. Use `brings` where the test itself acts."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        await (pilot.pause(PAUSE_SECONDS) if pilot else asyncio.sleep(PAUSE_SECONDS))
    if pilot:
        await pilot.pause()
