"""A race in the engine of a chat: the session, its recording and the next question are as without it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ladechat import protocol
from ladechat.protocol import Event, Failed, Generate, Loading, Pace, Step, Stop, TurnFinished, Watch
from ladechat.session.engine import State
from ladechat.session.measuring import DEFAULT_DECODERS, Measuring
from ladechat.session.recordings.recording import Recording
from tests.fake_engine import FakeEngine
from tests.session.test_session import Room


class Chat(Room):
    """A session in which races are held."""

    async def answered(self, question: str) -> None:
        self.session.ask(question)
        await self.until(lambda: not self.session.asking)

    async def race(self, until: Callable[[Measuring], object]) -> tuple[Measuring, "asyncio.Task[None]"]:
        """A race on the last question that has come so far."""
        race = self.session.race("One?")
        assert race is not None
        running = asyncio.create_task(race.run())
        await self.until(lambda: bool(until(race)))
        return race, running

    async def raced(self) -> Measuring:
        """A race from its start to its end."""
        race, running = await self.race(lambda race: not race.running)
        await running
        return race


async def test_all_lanes_run_in_the_engine_of_the_chat_and_it_goes_on() -> None:
    engine = FakeEngine()
    chat = Chat(engine)
    await chat.reach(State.READY)
    await chat.answered("One?")
    shown = list(chat.screen.events)
    race = await chat.raced()
    assert [lane.name for lane in race.lanes] == list(DEFAULT_DECODERS) and all(lane.whole for lane in race.lanes)
    assert [lane.settings.decoder for lane in race.lanes if lane.settings] == list(DEFAULT_DECODERS)
    assert not engine.closed and not chat.session.racing and chat.state is State.READY
    assert chat.screen.events == shown and engine.settings == chat.session.requested
    turn = chat.session.conversation.turn
    await chat.answered("Two?")
    assert engine.questions[-1].turn == turn + 1 and len(chat.settings) == 1
    await chat.session.close()


async def test_a_race_goes_at_full_speed_without_panels_and_then_the_chat_has_its_own_pace_again() -> None:
    engine = FakeEngine()
    chat = Chat(engine)
    await chat.reach(State.READY)
    chat.session.set_pace(chat.session.pace.slow_motion())
    chat.session.watch(Watch(lens=True))
    await chat.until(lambda: engine.watched)
    engine.commands.clear()
    await chat.raced()
    await chat.until(lambda: engine.watched)
    before, after = [Pace(), Watch(lens=False)], [Pace(steps_per_second=4.0), Watch(lens=True)]
    assert engine.commands[:2] == before and engine.commands[-2:] == after
    assert engine.commands[2:-2] == engine.questions
    await chat.session.close()


async def test_a_recording_has_nothing_of_a_race_and_no_gap_where_it_was(tmp_path: Path) -> None:
    chat = Chat(FakeEngine())
    file = tmp_path / "talk.ladechat.jsonl"
    chat.session.recorder.start(file)
    await chat.reach(State.READY)
    await chat.answered("One?")
    await chat.raced()
    await chat.answered("Two?")
    await chat.raced()
    await chat.session.close()
    recording = Recording.read(file)
    assert recording.notices == []
    finished = [event for event in recording.events if isinstance(event, TurnFinished)]
    assert [event.turn for event in finished] == [1, 2]
    assert {event.turn for event in recording.events if isinstance(event, Step)} == {1, 2}


async def test_a_race_that_is_left_ends_its_turn_and_a_question_waits_for_that() -> None:
    engine = FakeEngine(hold_steps=True)
    chat = Chat(engine)
    await chat.reach(State.READY)
    engine.release(3)
    race, running = await chat.race(lambda race: race.current and race.current.steps)
    running.cancel()
    stopping, engine_stop = asyncio.Event(), engine._finish

    def held(reason: protocol.FinishReason) -> None:
        stopping.set()

    engine._finish = held  # type: ignore[method-assign]  # its last pass takes a while
    await asyncio.wait([running])
    assert not race.running and chat.session.racing
    chat.session.ask("Two?")
    await stopping.wait()
    assert len(engine.questions) == 1 and chat.session.asking
    engine._finish = engine_stop  # type: ignore[method-assign]
    engine._finish("stopped")
    engine.release()
    await chat.until(lambda: not chat.session.asking and not chat.session.racing)
    assert [command.turn for command in engine.questions] == [0, 1]
    assert chat.session.conversation.exchanges[-1].question == "Two?"
    await chat.session.close()


async def test_a_stop_ends_the_turn_that_is_measured_and_keeps_the_engine() -> None:
    engine = FakeEngine(hold_steps=True)
    chat = Chat(engine)
    await chat.reach(State.READY)
    engine.release(3)
    race, running = await chat.race(lambda race: race.current and len(race.current.steps) == 3)
    await race.stop()
    await running
    assert engine.commands[-1] == Stop() and len(engine.questions) == 1
    first = race.lanes[0]
    assert first.finished is not None and first.finished.reason == "stopped" and race.failure is None
    await chat.until(lambda: not chat.session.racing)
    engine.release()
    await chat.answered("Two?")
    assert not engine.closed
    await chat.session.close()


async def test_while_the_engine_loads_a_race_waits_and_one_that_is_stopped_leaves_it_loading() -> None:
    engine = FakeEngine(hold_loading=True)
    chat = Chat(engine)
    await chat.reach(State.LOADING)
    stopped, running = await chat.race(lambda race: True)
    await chat.until(lambda: chat.session.racing)
    await stopped.stop()
    await running
    assert stopped.lanes == [] and stopped.failure is None and not engine.closed and not chat.session.racing
    race, running = await chat.race(lambda race: True)
    await chat.until(lambda: chat.session.racing)
    engine._say(Loading(stage=2, stages=2, doing="reading the weights"))
    await chat.until(lambda: race.loading is not None)
    engine.finish_loading()
    await running
    assert len(race.lanes) == 4 and race.failure is None
    await chat.reach(State.READY)
    await chat.session.close()


ENDS: dict[str, Callable[[FakeEngine], None]] = {
    "says why": lambda engine: engine.fail_fatally("internal"),
    "says nothing": lambda engine: engine.die(),
}


@pytest.mark.parametrize("how", ENDS)
async def test_an_engine_that_ends_ends_the_race_and_the_chat_with_a_sentence(how: str) -> None:
    engine, another = FakeEngine(hold_steps=True), FakeEngine()
    chat = Chat(engine, another)
    await chat.reach(State.READY)
    engine.release(3)
    race, running = await chat.race(lambda race: race.current and race.current.steps)
    ENDS[how](engine)
    await running
    await chat.reach(State.ENDED)
    assert race.failure is not None and not chat.session.racing
    assert isinstance(chat.screen.events[-1], Failed) and chat.screen.events[-1].fatal
    late = chat.session.race("One?")
    assert late is not None
    await late.run()
    assert late.failure is not None
    chat.session.restart()
    await chat.reach(State.READY)
    assert len((await chat.raced()).lanes) == 4
    await chat.session.close()


async def test_a_lane_that_fails_ends_the_race_and_no_settings_of_the_chat() -> None:
    engine = FakeEngine()
    chat = Chat(engine)
    await chat.reach(State.READY)
    before: list[Event] = list(chat.screen.events)
    engine.fail_next = "out_of_memory"
    race = await chat.raced()
    assert race.failure == "It is too long. Shorten it." and chat.screen.events == before
    await chat.answered("Two?")
    assert isinstance(engine.commands[-1], Generate)
    await chat.session.close()


async def test_another_model_that_is_found_takes_over_and_the_race_says_so() -> None:
    old, new = FakeEngine(hold_steps=True), FakeEngine()
    chat = Chat(old, new)
    await chat.reach(State.READY)
    old.release(3)
    race, running = await chat.race(lambda race: race.current and race.current.steps)
    assert chat.session.use_model("owner/other", chat._new_engine)
    await running
    assert race.failure is not None and "replaced" in race.failure
    await chat.reach(State.READY)
    assert not chat.session.racing
    await chat.answered("Two?")
    assert len(new.questions) == 1
    await chat.session.close()


async def test_a_race_in_which_the_engine_says_nothing_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(hold_steps=True)
    chat = Chat(engine)
    await chat.reach(State.READY)
    assert chat.session.stuck_for() is None
    _, running = await chat.race(lambda race: race.current)
    await chat.reach(State.ANSWERING)
    monkeypatch.setattr("ladechat.session.replaceable_engine.SILENCE_SECONDS", dict.fromkeys(State, -1.0))
    assert chat.session.stuck_for() is not None
    running.cancel()
    await chat.session.close()
