"""`ladechat ask`, as a shell would run it."""

import errno
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as Kind
from typer.testing import CliRunner

from ladechat.engine_options import EngineOptions
from ladechat.protocol import Closed, Event, Header, Loading, Step, TurnFinished, decode_event
from ladechat.session.conversations.conversation import Conversation
from ladechat.shell import cli
from ladechat.shell.ask import BROKEN_PIPE, AnswerPrinter, run
from tests.engine.wire import ROOT
from tests.fake_engine import FakeEngine
from tests.packed import tiny_file
from tests.waiting import patience
from tests.widgets.sample_steps import finished, step

QUESTION = "What is the n-gram pool?"


def ask(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ladechat", "ask", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=patience(), check=False)


def events_in(output: bytes) -> list[Event]:
    events = [decode_event(line) for line in output.split(b"\n") if line]
    assert None not in events
    return [event for event in events if event is not None]


def check_stream(output: bytes) -> list[Event]:
    """It decodes, from the header to its closing line, and its pieces are the text; its events."""
    events = events_in(output)
    assert isinstance(events[0], Header)
    finished, closed = events[-2:]
    assert isinstance(closed, Closed) and isinstance(finished, TurnFinished)
    pieces = [piece for event in events if isinstance(event, Step) for piece in event.pieces]
    assert "".join(pieces) == finished.text != ""
    return events


def test_a_question_through_a_pipe_becomes_a_stream_or_a_plain_answer_and_a_summary(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, "-m", "tests.fake_engine_process", "nowhere", "ask", "-", "--json"]
    done = subprocess.run(command, input=QUESTION.encode(), capture_output=True, check=True, cwd=ROOT)
    events = check_stream(done.stdout)
    check_printed(events, capsys, "W 5 N 3 G 5")


@pytest.mark.full
def test_the_bundled_model_answers_a_question_through_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    done = ask("-", "--json", "--window", "7", "--max-new-tokens", "300", text=QUESTION)
    assert done.returncode == 0, done.stderr
    check_printed(check_stream(done.stdout.encode()), capsys, "W 7 N 3 G 5")


def print_answer(events: Sequence[Event]) -> None:
    printer = AnswerPrinter()
    for event in events:
        printer.show(event)
    printer.end()


def check_printed(events: list[Event], capsys: pytest.CaptureFixture[str], settings: str) -> None:
    """In a pipe the answer is plain, and the summary goes to standard error."""
    print_answer(events[:-1])
    finished = events[-2]
    assert isinstance(finished, TurnFinished)
    out, said = capsys.readouterr()
    assert out == finished.text.strip() + "\n"
    *notices, summary = said.splitlines()
    assert all("kernels" in notice for notice in notices), "which tests do not compile"
    figures = ("tokens", "passes", "tokens a pass", "tok/s", "as fast as plain decoding")
    assert all(part in summary for part in (*figures, settings, "demo", "cpu", "float32"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([QUESTION, "--window", "0"], "W has to be from 1 to 64, not 0"),
        ([QUESTION, "-N", "1"], "N has to be from 2 to 16, not 1"),
        ([QUESTION, "--guesses", "-1"], "G has to be from 0 to 64, not -1"),
        ([QUESTION, "--decoder", "magic"], "no decoder 'magic'"),
        ([QUESTION, "--max-new-tokens", "0"], "from 1 on, not 0"),
        (["  "], "question is empty"),
        ([QUESTION, "--window", "many"], "--window"),
    ],
)
def test_bad_input_gets_a_sentence_and_an_exit_code(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(cli.app, ["ask", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr and "Traceback" not in result.stderr


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    done = ask(QUESTION, "--model", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "no *.safetensors" in done.stderr and "Traceback" not in done.stderr


# --- what is about the process, over an engine without torch ---------------------------------------------------------


@contextmanager
def over_a_fake(held: str, stdout: int = subprocess.PIPE) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tests.fake_engine_process", held, "ask", QUESTION, "--json"]
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_keeps_the_partial_answer_and_exits_with_130() -> None:
    with over_a_fake(held="2") as process:
        assert process.stdout and process.stderr
        written = b""
        while written.count(b'"event":"step"') < 2:
            written += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        written += process.stdout.read()
        assert process.wait(patience()) == 130
        assert b"Traceback" not in process.stderr.read()
    finished = events_in(written)[-2]
    assert isinstance(finished, TurnFinished) and finished.reason == "stopped"
    assert "".join(p for e in events_in(written) if isinstance(e, Step) for p in e.pieces) == finished.text != ""


def test_ctrl_c_while_it_loads_exits_with_130() -> None:
    with over_a_fake(held="loading") as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(patience()) == 130
        assert b"Traceback" not in process.stderr.read()


def test_a_reader_that_leaves_is_no_error_to_speak_of() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with over_a_fake(held="nowhere", stdout=writer) as process:
        os.close(writer)
        assert process.wait(patience()) == BROKEN_PIPE
        assert process.stderr is not None and process.stderr.read() == b""


# --- on a terminal ----------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    """What a terminal was given."""

    def isatty(self) -> bool:
        return True


def streams(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[io.StringIO, io.StringIO]:
    """What is written from now on on standard output and error: a terminal without colours, or pipes."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    out, error = (Screen(), Screen()) if terminal else (io.StringIO(), io.StringIO())
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    return out, error


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_colours_and_with_no_color_only_cues(colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    out = Screen()
    monkeypatch.setattr(sys, "stdout", out)
    steps = [step(["a"]), step([" pool", " of"], index=1), step([" n", "-grams"], index=2)]
    print_answer((*steps, finished(steps)))
    assert ("38;2;" in out.getvalue()) == colour
    assert "\x1b[4m" in out.getvalue() or "\x1b[4;" in out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_what_would_steer_a_terminal_is_made_visible_there_and_goes_into_a_pipe_as_it_is(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, error = streams(terminal, monkeypatch)
    steps = [step(["a\x1b[2J"]), step(["\x9b31m", "\u202e\tb\n"], index=1)]
    print_answer((Loading(stage=1, stages=1, doing="reading \x1b]0;title\x07"), *steps, finished(steps)))
    if terminal:
        shown = re.sub(r"\x1b(\[[\d;]*m|7)", "", out.getvalue())  # colours, and where a word began
        assert shown.startswith("a\\x1b[2J\\x9b31m\\u202e") and shown.replace("\n", "").isprintable()
        assert "reading \\x1b]0;title\\x07" in error.getvalue().replace("\n", " ")
    else:
        assert out.getvalue() == "a\x1b[2J\x9b31m\u202e\tb\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_no_line_ends_in_a_blank_but_where_the_model_broke_it(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out, error = streams(terminal, monkeypatch)
    pieces = [[" several", " words"], [" "], ["  \n", "more", " "], [" "]]
    steps = [step(each, index=index) for index, each in enumerate(pieces)]
    print_answer((*steps, finished(steps)))
    answer, summary = (re.sub(r"\x1b(?:\[[\d;]*m|7)", "", stream.getvalue()) for stream in (out, error))
    markdown_break = "" if terminal else "   "
    assert answer == f"several words{markdown_break}\nmore\n", "two blanks and an end are a line break in Markdown"
    assert not re.search(r" (\n|$)", summary) and (summary.count("\n") > 1) == terminal


def test_an_engine_that_cannot_be_run_and_an_answer_that_cannot_be_written_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ladechat.shell.ask.engine_of", lambda _: FakeEngine())
    monkeypatch.setattr("ladechat.shell.ask.forget_output", lambda: None)
    with monkeypatch.context() as patched:
        patched.setattr(FakeEngine, "start", fails)
        assert run(EngineOptions(), Conversation(), "Hello?", as_json=True) == 1
    assert capsys.readouterr().err == "ladechat: The engine could not be run: Too many open files.\n"
    monkeypatch.setattr("ladechat.shell.ask.JsonPrinter.show", full)
    assert run(EngineOptions(), Conversation(), "Hello?", as_json=True) == 1
    assert capsys.readouterr().err == "ladechat: The answer could not be written: No space left on device.\n"


def test_a_model_that_stays_packed_answers_without_transformers_whose_import_takes_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = ask(QUESTION, "--model", str(tiny_file(kind=Kind.Q8_0)), "--max-new-tokens", "8")
    assert done.returncode == 0, done.stderr
    (log,) = tmp_path.rglob("engine-*.log")
    lines = log.read_text().splitlines()
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if "import time" in line}
    assert "torch" in imported and "transformers" not in imported
