"""An engine does not die without a word, whatever the checkpoint, its tokenizer or a library does."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest

from ladechat.engine import server
from ladechat.engine.server import Engine
from ladechat.engine_options import EngineOptions
from ladechat.engine_process import opening
from ladechat.engine_process.pace import StepPace
from ladechat.engine_process.stream import EventStream
from ladechat.model.checkpoint.files import local_folder, local_gguf
from ladechat.protocol import Event, Failed, Generate, Header, decode_event
from tests.engine.messages import user
from tests.engine.wire import Wire


class Panic(BaseException):
    """As the tokenizers' own, which is no Exception."""


def panic(*_: Any, **__: Any) -> NoReturn:
    raise Panic("called `Option::unwrap()` on a `None` value")


class Written:
    """A stream into a pipe, read back."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self.stream = EventStream(writer)
        self._writer = writer

    def events(self) -> list[Event]:
        os.close(self._writer)
        with os.fdopen(self._reader, "rb") as lines:
            return [event for event in map(decode_event, lines) if event is not None]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """What `serve` writes, in this process: neither its input nor its output is that of the tests."""
    written = Written()
    monkeypatch.setattr(EventStream, "take_over_stdout", lambda: written.stream)
    monkeypatch.setattr(opening, "Inbox", lambda *_: None)
    monkeypatch.setattr(opening, "watch_input", lambda _: None)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115, PTH123 - its descriptor is asked for
    monkeypatch.setattr("faulthandler.register", lambda _: None)
    return written


@pytest.mark.parametrize("stage", ["_load", "_serve_model"])
@pytest.mark.parametrize("error", [Panic("unwrap"), RuntimeError("a word"), TypeError("'<' not supported")])
def test_whatever_fails_before_the_first_answer_is_told_by_a_fatal_failure(
    written: Written, monkeypatch: pytest.MonkeyPatch, stage: str, error: BaseException
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr(server, "_load", lambda *_: None)
    monkeypatch.setattr(server, stage, fail)
    assert server.serve(EngineOptions(device="cpu", dtype="float32")) == 1
    header, failed = written.events()
    assert isinstance(header, Header) and isinstance(failed, Failed)
    assert failed.fatal and type(error).__name__ in failed.message


def test_a_tokenizer_that_panics_costs_the_answer_and_not_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written()
    engine = object.__new__(Engine)
    engine._service, engine._stream, engine._stop = Mock(), written.stream, False
    engine._pace = StepPace()
    monkeypatch.setattr("ladechat.engine.turn.answer", panic)
    engine._answer(Generate(turn=3, messages=[user("a")]))
    (failed,) = written.events()
    assert isinstance(failed, Failed) and (failed.turn, failed.fatal) == (3, False)
    assert "Panic" in failed.message


@pytest.mark.parametrize("find", [local_folder, local_gguf])
@pytest.mark.parametrize(
    "name", ["a" * 5000, "a/" * 5000 + "b.gguf", "~nobody-of-this-name/x", "a\0b", "\udc80"], ids=ascii
)
def test_a_name_that_no_path_can_have_is_that_of_no_local_model(find: Callable[[str], Path | None], name: str) -> None:
    assert find(name) is None


def test_an_engine_for_a_model_of_any_name_says_why_it_ends() -> None:
    """As a process for bytes that are no UTF-8, and for those that a terminal would follow."""
    wire = Wire("--model", os.fsdecode(b"caf\xe9\x1b[31m"))
    try:
        events = wire.rest()
        assert isinstance(events[0], Header) and isinstance(events[-1], Failed), wire.log
        assert events[-1].fatal
        assert wire.wait_for_end() == 1
    finally:
        wire.close()


@pytest.mark.parametrize("name", ["a" * 5000, os.fsdecode(b"caf\xe9"), "\x1b[31m"], ids=["long", "not UTF-8", "escape"])
def test_whatever_a_model_is_called_it_is_said_why_it_cannot_be_loaded(written: Written, name: str) -> None:
    assert server.serve(EngineOptions(name, "cpu", "float32")) == 1
    header, *_, failed = written.events()
    assert isinstance(header, Header) and isinstance(failed, Failed) and failed.fatal
