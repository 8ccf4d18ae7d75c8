"""A command of the user's as the engine: scripts stand in for a link that breaks, another version, or no engine."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from ladechat.engine_command import UNCHANGED, EngineCommand
from ladechat.protocol import (
    Configure,
    Event,
    Failed,
    Generate,
    Header,
    Message,
    Pong,
    Ready,
    Settings,
    SettingsApplied,
    Step,
    Stop,
    TurnFinished,
    encode,
)
from ladechat.session import command_engine, live
from ladechat.session.command_engine import CommandEngine
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.session import Session
from tests.engine.wire import ROOT
from tests.fake_engine import ANSWER
from tests.fake_model import ready
from tests.session.scripted import SPEAK, all_events, doings
from tests.session.streams import HEADER, turn
from tests.waiting import until

QUESTION = Generate(turn=1, messages=[Message(role="user", content="What is it?")])
FAKE = f"env PYTHONPATH={shlex.quote(str(ROOT))} {sys.executable} -m tests.fake_engine_process"

Start = Callable[..., CommandEngine]


@pytest.fixture
def command_that(tmp_path: Path) -> Start:
    """A command that runs the given lines of Python, and is sent a change of settings."""

    def prepare(code: str, change: Configure = UNCHANGED) -> CommandEngine:
        script = tmp_path / "engine.py"
        script.write_text(SPEAK + code)
        return CommandEngine(EngineCommand("", (sys.executable, str(script)), change), logs=tmp_path / "logs")

    return prepare


def over_a_shell(script: str, logs: Path, change: Configure = UNCHANGED) -> CommandEngine:
    """An engine at the other end of a pipe to a shell."""
    return CommandEngine(EngineCommand("", ("sh", "-c", script), change), logs=logs)


async def events_of(engine: CommandEngine) -> list[Event]:
    """All that an engine says until it ends, which is closed then."""
    await engine.start()
    events = await asyncio.wait_for(all_events(engine), 60)
    await engine.close()
    return events


def reason(events: Sequence[Event]) -> str:
    """What is said of the end, and what to do."""
    end = events[-1]
    assert isinstance(end, Failed) and end.fatal
    return f"{end.message} {end.hint}"


# --- an engine over a pipe --------------------------------------------------------------------------------------------


async def until_answered(engine: CommandEngine) -> list[Event]:
    """Ask, and take all that comes up to the end of the answer, and of the measurement of the link after it."""
    await engine.start()
    asking = asyncio.create_task(engine.send(QUESTION))
    events: list[Event] = []
    async for event in engine.events():
        events.append(event)
        measured = isinstance(event, Pong) and event.round_trip_ms is not None
        if measured and any(isinstance(each, TurnFinished) for each in events):
            break
    await asking
    await engine.close()
    return events


@pytest.mark.parametrize(
    "link", ["", f" | env PYTHONPATH={ROOT} {sys.executable} -m tests.slow_link 4096 0.001"], ids=["fast", "slow"]
)
async def test_an_engine_over_a_pipe_to_a_shell_answers_and_its_link_is_measured(link: str, tmp_path: Path) -> None:
    events = await until_answered(over_a_shell(f"{FAKE} nowhere engine{link}", tmp_path))
    answer = "".join(piece for event in events if isinstance(event, Step) for piece in event.pieces)
    assert answer == ANSWER and not any(isinstance(event, Failed) for event in events)
    measured = [event.round_trip_ms for event in events if isinstance(event, Pong)]
    assert [ms for ms in measured if ms is not None and ms > 0]
    assert [event.seq for event in events] == list(range(len(events)))


async def test_the_given_settings_are_sent_first_and_all_others_are_as_the_command_has_them(tmp_path: Path) -> None:
    change = Configure(decoder="suffix", temperature=0.5)
    events = await until_answered(over_a_shell(f"{FAKE} nowhere engine", tmp_path, change))
    header = next(event.settings for event in events if isinstance(event, Header))
    ready = next(event.settings for event in events if isinstance(event, Ready))
    applied = next(event.settings for event in events if isinstance(event, SettingsApplied))
    for settings in (header, ready, applied):
        assert (settings.decoder, settings.temperature, settings.top_p) == ("suffix", 0.5, 1.0)
    places = [type(event) for event in events]
    assert places.index(SettingsApplied) < places.index(Step)


async def test_without_given_settings_none_are_sent(command_that: Start) -> None:
    engine = command_that("loading(b'a'); loading(sys.stdin.readline().strip().replace('\"', '').encode())")
    sending = asyncio.create_task(engine.send(Stop()))
    assert doings(await events_of(engine)) == ["a", "{command:stop}"]
    await sending


async def test_a_session_takes_model_and_settings_from_the_command_and_keeps_them_for_the_next(tmp_path: Path) -> None:
    started: list[CommandEngine] = []

    def new_engine(settings: Settings) -> CommandEngine:
        change = Configure(**asdict(settings)) if started else Configure(top_k=3)
        started.append(over_a_shell(f"{FAKE} nowhere engine", tmp_path, change))
        return started[-1]

    session = Session(new_engine, Settings(decoder="auto"), Conversation(), named_by_engine=True)
    session.start()
    ready: list[Ready] = []
    session.show = lambda events: ready.extend(event for event in events if isinstance(event, Ready))

    def loaded(times: int) -> bool:
        session.frame()
        return len(ready) == times

    await until(lambda: loaded(1))
    assert session.conversation.model == "demo"
    assert (session.requested.decoder, session.requested.top_k) == ("lookahead", 3)
    session.configure(Configure(temperature=0.7))
    assert session.restart()
    await until(lambda: loaded(2))
    requested = session.requested
    assert (requested.decoder, requested.temperature, requested.top_k) == ("lookahead", 0.7, 3)
    await session.close()


# --- what comes before the header -------------------------------------------------------------------------------------


async def test_a_greeting_before_the_header_is_no_fault(command_that: Start) -> None:
    engine = command_that(
        "say(b'Welcome to gpu-box'); say(b''); said.clear(); loading(b'a'); sys.stdin.readline(); loading(b'b')"
    )
    await engine.start()
    events = engine.events()
    seen = [await anext(events) for _ in range(2)]
    assert isinstance(seen[0], Header) and doings(seen) == ["a"]
    assert engine.first_words == "" and engine.left_out == 0
    await engine.close()
    assert not any(isinstance(event, Failed) for event in [event async for event in events])


async def test_what_a_command_says_while_it_is_waited_for_is_known(command_that: Start) -> None:
    engine = command_that("say(b'job 7 is queued'); sys.stdin.readline()")
    await engine.start()
    reading = asyncio.create_task(all_events(engine))
    await until(lambda: engine.first_words == "job 7 is queued")
    await engine.close()
    assert await reading == [], "an end that was asked for is no news"


async def test_nothing_reaches_a_shell_that_is_no_engine(tmp_path: Path) -> None:
    """It would run what stands in a question between $( and )."""
    trap = tmp_path / "trap"
    engine = CommandEngine(EngineCommand("", ("sh",), Configure(temperature=0.5)), logs=tmp_path)
    await engine.start()
    question = replace(QUESTION, messages=[Message(role="user", content=f"$(touch {trap})")])
    sending = asyncio.create_task(engine.send(question))
    reading = asyncio.create_task(all_events(engine))
    await until(lambda: engine._process is not None)
    await engine.close()
    await asyncio.gather(sending, reading)
    assert not trap.exists() and engine.returncode == 0, "it ended at the end of its input"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("say(b'hello')", "(exit status 0) before a word of the protocol: hello."),
        ("sys.exit('ladechat: not found')", "(exit status 1) before a word of the protocol: ladechat: not found."),
        ("while True: say(b'y' * 5000)", "does not speak the protocol; it says: yyy"),
        ("while True: say(b'')", "does not speak the protocol."),
        ("os.write(1, b'x' * 70_000_000); time.sleep(600)", "it is longer than 64 MiB"),
        ("""say(b'{"event":"header","format":"ladechat","version":"4.0"}')""", "cannot be read: "),
        (
            """say(b'{"event":"header","format":"ladechat","version":"9.1","program":"ladechat 7.0","new":[]}')""",
            "version 9.1 of the protocol (ladechat 7.0), and this ladechat version",
        ),
        ("loading(b'a'); say(sys.stdin.readline().rstrip().encode())", "gives back what it is sent, as a terminal"),
    ],
    ids=["other words", "a fault", "a flood", "empty lines", "no line", "half a header", "later version", "echo"],
)
async def test_a_command_that_is_no_engine_is_refused_with_what_it_said(
    command_that: Start, code: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_LEAVE", 0.2)
    events = await events_of(command_that(code, Configure(temperature=0.5)))
    assert says in reason(events) and len(reason(events)) < 2000


async def test_an_engine_of_an_earlier_minor_version_answers(command_that: Start) -> None:
    header = encode(replace(HEADER, version="4.0")).rstrip()
    engine = command_that(f"say({header!r}); loading(b'a'); sys.stdin.readline()")
    await engine.start()
    events = engine.events()
    assert isinstance(await anext(events), Header)
    assert doings([await anext(events)]) == ["a"]
    await engine.close()


# --- the link ---------------------------------------------------------------------------------------------------------


async def test_a_link_that_breaks_is_reported_with_its_status_and_its_last_line(command_that: Start) -> None:
    engine = command_that("loading(b'a'); os.write(2, b'Connection to gpu-box closed.\\n'); sys.exit(255)")
    events = await events_of(engine)
    assert "The engine's command has ended (exit status 255): Connection to gpu-box closed." in reason(events)
    assert doings(events) == ["a"]


async def test_a_command_that_is_killed_says_by_which_signal(command_that: Start) -> None:
    assert "(signal 9)" in reason(await events_of(command_that("loading(b'a'); os.kill(os.getpid(), 9)")))


async def test_an_engine_that_has_said_why_it_ends_says_it_once(command_that: Start) -> None:
    why = encode(Failed(code="load_failed", message="Torn.", hint="Mend it.", fatal=True)).rstrip()
    events = await events_of(command_that(f"loading(b'a'); say({why!r}); sys.exit(1)"))
    assert [event.message for event in events if isinstance(event, Failed)] == ["Torn."]


async def test_a_link_that_is_silent_is_not_ended_by_a_signal(command_that: Start) -> None:
    """ssh would end of the one that asks an engine for its stacks."""
    engine = command_that("loading(b'a'); sys.stdin.readline(); loading(b'b')")
    await engine.start()
    events = engine.events()
    await anext(events)
    engine.dump_stacks()
    await engine.send(Stop())
    assert doings([event async for event in events]) == ["a", "b"]
    await engine.close()
    assert engine.returncode == 0


async def test_an_engine_that_answers_no_ping_is_pinged_once(
    command_that: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of an earlier version: no number is shown that was not measured."""
    monkeypatch.setattr(command_engine, "PING_SECONDS", 0.0)
    lines = [encode(event).rstrip() for event in (HEADER, ready(Settings()), *turn(1))]
    count = f"for line in {lines!r}: say(line)\nloading(b', '.join(line[12:16] for line in sys.stdin.buffer))"
    engine = command_that(count)
    await engine.start()
    events = engine.events()
    seen = [await anext(events) for _ in lines]
    await engine.send(Stop())
    assert engine._process is not None and engine._process.stdin is not None
    engine._process.stdin.close()
    seen += [event async for event in events]
    assert doings(seen) == ["ping, stop"] and not any(isinstance(event, Pong) for event in seen)
    await engine.close()


async def test_a_pong_that_nobody_asked_for_measures_nothing(command_that: Start) -> None:
    pong = encode(Pong(round_trip_ms=0.01)).rstrip()
    events = await events_of(command_that(f"loading(b'a'); say({pong!r})"))
    assert [event.round_trip_ms for event in events if isinstance(event, Pong)] == [None]
