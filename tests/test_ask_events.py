"""What `ask` prints and returns for the events of an engine, in a pipe."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ladechat import protocol
from ladechat.engine_options import EngineOptions
from ladechat.protocol import (
    Closed,
    Event,
    Failed,
    Message,
    Pong,
    Settings,
    Step,
    SystemFolded,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.conversations.conversation import Conversation
from ladechat.shell import ask
from tests.test_ask import events_in
from tests.widgets.sample_steps import step as emitted
from tests.widgets.test_formatting import LLAMA


class Scripted:
    """Stands in for a live engine: says its lines, then ends."""

    said: tuple[Event, ...] = ()
    log = Path("engine.log")
    last_line = first_words = ""

    def __init__(self, command: list[str]) -> None:
        pass

    async def start(self) -> None:
        pass

    async def send(self, command: protocol.Command) -> None:
        pass

    async def close(self) -> None:
        pass

    async def events(self) -> AsyncIterator[Event]:
        await asyncio.sleep(0)  # the question comes first
        for event in self.said:
            yield event


BEGUN = TurnStarted(
    turn=1,
    messages=[Message(role="user", content="?")],
    prompt_ids=[1],
    cached_tokens=0,
    max_new_tokens=9,
    settings=Settings(),
)
OUT_OF_MEMORY = Failed(code="out_of_memory", message="The memory is used up.", hint="Use less.", turn=1)


def step(index: int, *pieces: str) -> Step:
    return emitted(pieces, index=index)


def finished(reason: protocol.FinishReason, text: str = "") -> TurnFinished:
    return TurnFinished(
        turn=1, reason=reason, text=text, token_ids=[1], steps=1, prefill_seconds=0.1, decode_seconds=0.1
    )


def ask_scripted(monkeypatch: pytest.MonkeyPatch, *events: Event, as_json: bool = False) -> int:
    monkeypatch.setattr(Scripted, "said", events)
    monkeypatch.setattr(ask, "engine_of", Scripted)
    return ask.run(EngineOptions(), Conversation(), "?", as_json=as_json)


def test_an_answer_in_a_pipe_is_its_pieces_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "one\n\n\ttwo\n* x"
    steps = (step(0, "one", "\n"), step(1, "\n"), step(2, "\ttwo", "\n", "* x"))
    assert ask_scripted(monkeypatch, BEGUN, *steps, finished("eos", text)) == 0
    assert capsys.readouterr().out == text + "\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_an_answer_that_failed_on_the_way_exits_1_and_keeps_what_there_is(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = (BEGUN, step(0, "par", "tial"), OUT_OF_MEMORY, finished("failed", "partial"))
    assert ask_scripted(monkeypatch, *events, as_json=as_json) == 1
    captured = capsys.readouterr()
    assert "The memory is used up. Use less." in captured.err
    assert events_in(captured.out.encode()) == [*events, Closed()] if as_json else captured.out == "partial\n"


def test_the_way_to_an_engine_elsewhere_stands_below_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask_scripted(monkeypatch, Pong(round_trip_ms=23.4), BEGUN, step(0, "Yes."), finished("eos", "Yes.")) == 0
    assert "link 23 ms" in capsys.readouterr().err


def test_a_system_prompt_that_the_chat_template_has_no_place_for_is_mentioned_beside_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = (SystemFolded(turn=1), BEGUN, step(0, "Yes."), finished("eos", "Yes."))
    assert ask_scripted(monkeypatch, *events) == 0
    captured = capsys.readouterr()
    assert captured.out == "Yes.\n"
    assert "ladechat: The model's chat template has no place for a system prompt" in captured.err


def test_a_question_that_is_refused_exits_1_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = Failed(code="message_too_long", message="Too long.", hint="Shorten it.", turn=1)
    assert ask_scripted(monkeypatch, refused) == 1
    assert capsys.readouterr().err == "ladechat: Too long. Shorten it.\n"


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("code", ["out_of_memory", "pool_file", "internal"])
def test_a_failure_that_is_not_the_answers_is_said_and_the_answer_is_waited_for(
    code: protocol.FailureCode, as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the first passes were too large for the memory: the engine goes on with smaller ones."""
    notice = Failed(code=code, message="Passes are smaller.", hint="Use less.")
    events = (notice, BEGUN, step(0, "an", "swer"), notice, finished("eos", "answer"))
    assert ask_scripted(monkeypatch, *events, as_json=as_json) == 0
    captured = capsys.readouterr()
    assert captured.err.count("Passes are smaller. Use less.") == 2
    assert events_in(captured.out.encode()) == [*events, Closed()] if as_json else captured.out == "answer\n"


def test_what_is_to_be_known_of_the_checkpoint_is_said_beside_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ready = msgspec.structs.replace(LLAMA, notices=["Answers also end at <|im_end|>."])
    assert ask_scripted(monkeypatch, ready, BEGUN, step(0, "one"), finished("eos", "one")) == 0
    captured = capsys.readouterr()
    assert captured.out == "one\n" and "ladechat: Answers also end at <|im_end|>.\n" in captured.err


def test_an_engine_that_dies_is_said_with_its_log_and_the_last_line_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask_scripted(monkeypatch, BEGUN, step(0, "par")) == 1
    assert "engine.log" in capsys.readouterr().err
    monkeypatch.setattr(Scripted, "last_line", "ImportError: \x1b[31mlibtorch_cpu.so")
    assert ask_scripted(monkeypatch, protocol.Loading(stage=1, stages=2, doing="starting")) == 1
    said = capsys.readouterr().err
    assert "its log is engine.log. Its log ends: ImportError: \\x1b[31mlibtorch_cpu.so\n" in said


def test_thoughts_are_not_printed_and_counted_in_the_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    thought = msgspec.structs.replace(step(0, "Hm", ", so"), reasoning=2)
    last = msgspec.structs.replace(step(1, ".", "Yes."), reasoning=1)
    assert ask_scripted(monkeypatch, BEGUN, thought, last, finished("eos", "Yes.")) == 0
    said = capsys.readouterr()
    assert said.out == "Yes.\n" and "thoughts, not shown: 3 tokens in 21 ms" in said.err
