"""One engine session without a screen: its states, its questions, its settings."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from ladechat import protocol
from ladechat.protocol import Configure, Event, Failed, Loading, Settings, Step, Stop, SystemPrompt, TurnFinished
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine import State
from ladechat.session.recordings.recording import Recording
from ladechat.session.replaceable_engine import WayBack
from ladechat.session.session import Session
from tests.fake_engine import ANSWER, FakeEngine
from tests.session.conversations import exchange, saved
from tests.waiting import until


class Screen:
    """What the session shows and gives back."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.given_back: list[str] = []
        self.place: int | None = None

    def show(self, events: Sequence[Event]) -> None:
        self.events += events

    def give_back(self, question: str, place: int | None) -> None:
        self.given_back.append(question)
        self.place = place


class Room:
    """A session with scripted engines, and its screen; and with a decoder for a model to go back to."""

    def __init__(
        self,
        *engines: FakeEngine,
        system: str = "",
        way_back: str | None = None,
        store: ConversationStore | None = None,
    ) -> None:
        self.engines = list(engines)
        self.settings: list[Settings] = []
        self.screen = Screen()
        instead = WayBack("demo", self._new_engine, way_back) if way_back else None
        conversation = Conversation(system, model="owner/torn" if way_back else "", store=store)
        self.session = Session(self._new_engine, Settings(), conversation, way_back=instead)
        self.session.show, self.session.give_back = self.screen.show, self.screen.give_back
        self.session.start()

    def _new_engine(self, settings: Settings) -> FakeEngine:
        self.settings.append(settings)
        engine = self.engines[len(self.settings) - 1]
        engine.settings = settings
        return engine

    async def until(self, true: Callable[[], bool]) -> None:
        """Let the engine and the session work until this is true."""

        def holds() -> bool:
            self.session.frame()
            return true()

        await until(holds, shows=lambda: self.session.state)

    @property
    def state(self) -> State:
        return self.session.state

    async def reach(self, state: State) -> None:
        await self.until(lambda: self.session.state is state)


async def test_from_the_start_to_an_answer_and_its_end() -> None:
    engine = FakeEngine(hold_loading=True, hold_steps=True)
    room = Room(engine)
    assert room.state is State.STARTING
    await room.reach(State.LOADING)
    engine._say(Loading(stage=1, stages=2, doing="fetching", done_bytes=1, total_bytes=2))
    await room.reach(State.DOWNLOADING)
    engine._say(Loading(stage=2, stages=2, doing="reading"))
    await room.reach(State.LOADING)
    engine.finish_loading()
    await room.reach(State.READY)
    room.session.ask("One?")
    await room.reach(State.ANSWERING)
    engine.release(2)
    room.session.stop()
    assert room.session.state == State.STOPPING
    await room.reach(State.READY)
    assert engine.commands.count(Stop()) == 1
    assert not room.session.asking
    await room.session.close()
    assert engine.closed


async def test_loading_can_be_stopped_where_that_does_something() -> None:
    engine = FakeEngine(hold_loading=True)
    room = Room(engine)
    await room.reach(State.LOADING)
    stoppable = [room.session.can_stop]
    search = Loading(stage=2, stages=2, doing="searching", stoppable=True)
    for stage in (search, replace(search, done_bytes=1, total_bytes=2, stoppable=False)):
        engine._say(stage)
        await room.until(lambda: room.session.can_stop)
        engine._say(replace(search, stoppable=False))
        await room.until(lambda: not room.session.can_stop)
    room.session.ask("One?")
    stoppable.append(room.session.can_stop)
    assert stoppable == [False, True]
    await room.session.close()


async def test_another_system_prompt_of_a_conversation_that_begins_is_shown() -> None:
    room = Room(FakeEngine(), system="Be brief.")
    kept = saved(Path("gone"), exchange("Old?"), system="Rhyme.")
    for act in (room.session.clear, partial(room.session.open, kept), room.session.clear):
        act()
    shown = [event.text for event in room.screen.events if isinstance(event, SystemPrompt)]
    assert shown == ["Rhyme.", "Be brief."]
    await room.session.close()


@pytest.mark.parametrize("says_why", [False, True])
@pytest.mark.parametrize("steps", [0, 3])
async def test_an_engine_that_dies_in_an_answer_leaves_what_has_come_or_the_question(
    tmp_path: Path, steps: int, says_why: bool
) -> None:
    engine, store = FakeEngine(hold_steps=True), ConversationStore(tmp_path)
    room = Room(engine, FakeEngine(), store=store)
    room.session.recorder.start(tmp_path / "talk.ladechat.jsonl")
    await room.reach(State.READY)
    room.session.ask("One?")
    room.session.ask_later("Two?")
    await room.until(lambda: room.session.state is State.ANSWERING)
    engine.release(steps)
    engine.fail_fatally() if says_why else engine.die()
    await room.reach(State.ENDED)
    shown = [event for event in room.screen.events if isinstance(event, Step)]
    assert len(shown) == steps and room.screen.given_back == [] and isinstance(room.screen.events[-1], Failed)
    half = "".join(piece for step in shown for piece in step.pieces)
    kept = [message.content for message in room.session.conversation.messages]
    assert kept == (["One?", half] if steps else [])
    assert room.session.waiting == (("Two?",) if steps else ("One?", "Two?"))
    assert [[one.answer for one in saved.exchanges] for saved in store.conversations()] == ([[half]] if steps else [])
    room.session.restart()
    await room.until(lambda: len(room.session.conversation.messages) == 4 and not room.session.asking)
    assert [message.content for message in room.session.conversation.messages][:3:2] == ["One?", "Two?"]
    await room.session.close()
    recording = Recording.read(tmp_path / "talk.ladechat.jsonl")
    assert recording.notices == [] and [turn.question for turn in recording.turns][-1] == "Two?"
    store.close()


async def test_what_has_come_of_an_answer_whose_engine_died_is_continued_or_replaced() -> None:
    engines = [FakeEngine(hold_steps=True) for _ in range(3)]
    room = Room(*engines)
    for engine in engines[:2]:
        await room.reach(State.READY)
        room.session.go_on() if room.session.conversation.begun else room.session.ask("One?")
        await room.until(lambda: room.session.state is State.ANSWERING)
        engine.release(3)
        engine.die()
        await room.reach(State.ENDED)
        assert room.session.restart()
    finished = [event for event in room.screen.events if isinstance(event, TurnFinished)]
    assert [end.reason for end in finished] == ["stopped"] * 2 and all(end.decode_seconds > 0 for end in finished)
    assert all(end.prefill_seconds > 0 for end in finished)  # the fake engine says one thing a second
    half = "".join(end.text for end in finished)
    assert [message.content for message in room.session.conversation.messages] == ["One?", half]
    assert ANSWER.startswith(half) and engines[1].questions[0].first_step == 3
    await room.reach(State.READY)
    room.session.ask("One?", 0)
    engines[2].release()
    await room.until(lambda: not room.session.asking)
    assert [message.content for message in room.session.conversation.messages] == ["One?", ANSWER]
    await room.session.close()


@pytest.mark.parametrize("question", ["One?", "Edited?"])
async def test_an_answer_stays_saved_until_the_one_that_replaces_it_is(tmp_path: Path, question: str) -> None:
    def saved() -> list[tuple[str, str]]:
        return [(one.question, one.answer) for kept in store.conversations() for one in kept.exchanges]

    store = ConversationStore(tmp_path)
    first, second = FakeEngine(answers=("first", "never")), FakeEngine(answers=("second",))
    room = Room(first, second, store=store)
    await room.reach(State.READY)
    room.session.ask("One?")
    await room.until(lambda: saved() == [("One?", "first")])
    first.hold()
    room.session.ask(question, 0)
    await room.reach(State.ANSWERING)
    assert saved() == [("One?", "first")]
    first.die()
    await room.reach(State.ENDED)
    assert saved() == [("One?", "first")] and (room.screen.given_back, room.screen.place) == ([question], 0)
    assert [message.content for message in room.session.conversation.messages] == ["One?", "first"]
    assert room.screen.events[-1].exchange.answer == "first"  # type: ignore[attr-defined]
    room.session.restart()
    await room.reach(State.READY)
    assert saved() == [("One?", "first")]
    room.session.ask(question, 0)
    await room.until(lambda: not room.session.asking)
    assert saved() == [(question, "second")]
    await room.session.close()
    store.close()


async def test_a_restart_keeps_the_wishes_and_the_queue_and_waits_for_the_old_engine() -> None:
    old, new = FakeEngine(hold_steps=True), FakeEngine()
    room = Room(old, new)
    await room.reach(State.READY)
    room.session.configure(Configure(decoder="lookahead", parameters={"window": 9}))
    room.session.configure(Configure(decoder="jacobi", temperature=0.5))
    room.session.ask("One?")
    room.session.ask_later("Two?")
    assert room.session.restart()
    assert room.state is State.RESTARTING
    assert not room.session.restart()
    await room.until(lambda: len(new.questions) == 2 and not room.session.asking)
    assert old.closed
    assert room.settings[1] == Settings(decoder="jacobi", parameters={"window": 9}, temperature=0.5)
    assert [question.messages[-1].content for question in new.questions] == ["One?", "Two?"]
    await room.session.close()


async def test_leaving_in_the_middle_of_a_restart_ends_both_engines() -> None:
    old, new = FakeEngine(), FakeEngine()
    room = Room(old, new)
    await room.reach(State.READY)
    room.session.restart()
    await room.session.close()
    assert old.closed and new.closed


async def test_until_the_old_engine_has_ended_only_that_changes_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = FakeEngine(), FakeEngine()
    room, closing, ended, close = Room(old, new), asyncio.Event(), asyncio.Event(), old.close

    async def close_slowly() -> None:
        closing.set()
        await ended.wait()
        await close()

    monkeypatch.setattr(old, "close", close_slowly)
    await room.reach(State.READY)
    room.session.restart()
    old.fail_fatally()
    await room.until(closing.is_set)
    room.session.ask("One?")
    room.session.stop()
    room.session.frame()
    assert room.state is State.RESTARTING and room.screen.given_back == ["One?"]
    assert not room.session.restart() and not room.session.use_model("owner/other", room._new_engine)
    ended.set()
    await room.reach(State.READY)
    await room.session.close()


async def test_settings_that_the_engine_had_to_shrink_are_those_of_the_next_engine_too() -> None:
    engine = FakeEngine()
    room = Room(engine)
    await room.reach(State.READY)
    room.session.configure(Configure(decoder="lookahead", parameters={"window": 20, "nodes": 3}))
    await room.until(lambda: isinstance(room.screen.events[-1], protocol.SettingsApplied))
    assert room.session.requested.parameters == {"window": 20, "nodes": 3}
    engine._say(Failed(code="out_of_memory", message="Full.", hint="Less.", turn=None))
    smaller = Settings(decoder="lookahead", parameters={"window": 10})
    engine._say(protocol.SettingsApplied(settings=smaller))
    await room.until(lambda: room.screen.events[-1] == engine_event(room, protocol.SettingsApplied))
    assert room.session.requested.parameters == {"window": 10, "nodes": 3}
    await room.session.close()


def engine_event(room: Room, kind: type[Event]) -> Event | None:
    found = [event for event in room.screen.events if isinstance(event, kind)]
    return found[-1] if len(found) == 2 else None


@pytest.mark.parametrize("patience", [-1.0, 1000.0])
async def test_a_stuck_engine_is_asked_for_its_stacks_once(patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.session.replaceable_engine.SILENCE_SECONDS", dict.fromkeys(State, patience))
    engine = FakeEngine(hold_steps=True)
    room = Room(engine)
    await room.reach(State.READY)
    room.session.ask("One?")
    await room.reach(State.ANSWERING)
    seconds = [room.session.stuck_for() for _ in range(3)]
    assert [each is not None for each in seconds] == [patience < 0] * 3
    assert engine.stack_dumps == (patience < 0)
    await room.session.close()
