"""A live engine that says nothing costs nothing: its end is an event, not looked for."""

import asyncio

from tests.session.scripted import Start, doings


async def test_while_an_engine_runs_no_timer_waits_and_its_end_is_seen(engine_that: Start) -> None:
    engine = engine_that("loading(b'a'); sys.stdin.read()")
    await engine.start()
    events = engine.events()
    said = [await anext(events), await anext(events)]
    assert doings(said) == ["a"] and engine.returncode is None
    waiting = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    assert not [timer for timer in waiting if not timer.cancelled()]
    await engine.close()
    assert engine.returncode is not None
