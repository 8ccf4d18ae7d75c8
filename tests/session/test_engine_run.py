"""One engine, run: its events are passed on, its end is told once, and no other one is left behind."""

import pytest

from ladechat.protocol import Event, Ready, Stop
from ladechat.session.engine import EngineRun
from tests.fake_engine import FakeEngine
from tests.waiting import until


class Heard:
    """What came of an engine."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ends: list[str | None] = []
        self.began = 0

    def run(self, engine: FakeEngine) -> EngineRun:
        return EngineRun(engine, self.events.append, self.ends.append)

    def begin(self) -> None:
        self.began += 1


async def test_its_events_come_in_order_and_its_end_is_told_once() -> None:
    heard, engine = Heard(), FakeEngine()
    run = heard.run(engine)
    run.start(began=heard.begin)
    run.start(began=heard.begin)
    await until(lambda: any(isinstance(event, Ready) for event in heard.events))
    run.send(Stop())
    await until(lambda: engine.commands == [Stop()])
    engine.die()
    await until(lambda: bool(heard.ends))
    await run.close()
    assert [event.seq for event in heard.events] == list(range(len(heard.events)))
    assert heard.ends == ["The engine has ended."] and heard.began == 1


async def test_an_end_without_a_word_has_the_last_line_of_the_log() -> None:
    heard, engine = Heard(), FakeEngine()
    engine.last_line = "ImportError: libtorch_cpu.so"
    run = heard.run(engine)
    run.start()
    engine.die()
    await until(lambda: bool(heard.ends))
    assert heard.ends == ["The engine has ended. Its log ends: ImportError: libtorch_cpu.so"]


async def test_what_an_engine_says_of_its_end_is_not_said_again() -> None:
    heard, engine = Heard(), FakeEngine(hold_loading=True)
    run = heard.run(engine)
    run.start()
    await until(lambda: len(heard.events) == 2)
    engine.fail_fatally()
    await until(lambda: bool(heard.ends))
    assert heard.ends == [None]


async def test_an_engine_that_was_let_go_says_nothing_more_and_ends_before_the_next_one_begins() -> None:
    heard, later, old, new = Heard(), Heard(), FakeEngine(), FakeEngine()
    first = heard.run(old)
    first.start()
    await until(lambda: bool(heard.events))
    first.let_go()
    count = len(heard.events)
    second = later.run(new)
    second.start(after=first, began=lambda: later.ends.append(f"old closed: {old.closed}"))
    await until(lambda: bool(later.events))
    assert later.ends == ["old closed: True"] and len(heard.events) == count
    await second.close()
    assert new.closed


async def test_closing_ends_the_others_too_also_while_one_is_waited_for() -> None:
    engines = [FakeEngine() for _ in range(3)]
    runs = [Heard().run(engine) for engine in engines]
    runs[0].start()
    runs[1].start()
    runs[2].start(after=runs[0])
    runs[2].end_other(runs[1])
    await runs[2].close()
    assert all(engine.closed for engine in engines)


def test_silence_counts_from_the_last_event_or_command_and_only_where_something_is_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    run = Heard().run(FakeEngine())
    now = 1000.0
    assert run.silent_for(None) is None
    run.reset_silence()
    now = 1010.0
    assert run.silent_for(10.0) is None
    now = 1012.5
    assert run.silent_for(10.0) == 12.5
    run.reset_silence()
    assert run.silent_for(10.0) is None
