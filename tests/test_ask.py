"""`ladechat ask`, as a shell would run it."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ladechat.ask import AnswerPrinter
from ladechat.protocol import Closed, Header, Loading, Step, TurnFinished, decode_event
from tests.widgets.sample_steps import finished, step

PATIENCE = 120
QUESTION = "What is the n-gram pool?"


def ask(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ladechat", "ask", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture(scope="module")
def streams() -> dict[str, subprocess.CompletedProcess[str]]:
    """The same question to both decoders, as JSON."""
    return {name: ask(QUESTION, "--json", "--decoder", name) for name in ("lookahead", "autoregressive")}


def test_the_json_stream_decodes_and_both_decoders_write_the_same(
    streams: dict[str, subprocess.CompletedProcess[str]],
) -> None:
    texts = {}
    for name, done in streams.items():
        assert done.returncode == 0, done.stderr
        events = [decode_event(line) for line in done.stdout.encode().split(b"\n") if line]
        assert isinstance(events[0], Header)
        finished, closed = events[-2:]
        assert isinstance(closed, Closed) and isinstance(finished, TurnFinished)
        pieces = [piece for event in events if isinstance(event, Step) for piece in event.pieces]
        assert "".join(pieces) == finished.text
        texts[name] = "".join(pieces)
    assert texts["lookahead"] == texts["autoregressive"] != ""


def test_a_pipe_gets_the_plain_answer_and_standard_error_the_summary(
    streams: dict[str, subprocess.CompletedProcess[str]],
) -> None:
    done = ask("-", "--window", "7", "--max-new-tokens", "300", text=QUESTION)
    finished = decode_event(streams["lookahead"].stdout.encode().strip().split(b"\n")[-2])
    assert isinstance(finished, TurnFinished)
    assert done.stdout == finished.text.lstrip() + "\n"
    assert done.returncode == 0
    summary = done.stderr.strip()
    assert "\n" not in summary
    for part in (
        "tokens",
        "passes",
        "tokens a pass",
        "tok/s",
        "as fast as plain decoding",
        "W 7 N 3 G 5",
        "demo",
        "cpu",
        "float32",
    ):
        assert part in summary


def test_a_terminal_gets_colours_and_with_no_color_only_cues() -> None:
    for environment, colour in (({}, True), ({"NO_COLOR": "1"}, False)):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "ladechat", "ask", QUESTION, "--decoder", "lookahead"],  # whatever pays here now
            stdout=slave,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment},
        )
        os.close(slave)
        written = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            written += part
        os.close(master)
        assert process.wait(PATIENCE) == 0
        assert (b"38;2;" in written) == colour
        assert b"\x1b[4m" in written or b"\x1b[4;" in written


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([QUESTION, "--window", "0"], 2, "W has to be from 1 to 64, not 0"),
        ([QUESTION, "-N", "1"], 2, "N has to be from 2 to 16, not 1"),
        ([QUESTION, "--guesses", "-1"], 2, "G has to be from 0 to 64, not -1"),
        ([QUESTION, "--decoder", "magic"], 2, "no decoder 'magic'"),
        ([QUESTION, "--max-new-tokens", "0"], 2, "at least 1"),
        (["  "], 2, "question is empty"),
        ([QUESTION, "--window", "many"], 2, "integer"),
        ([QUESTION, "--model", "./no/such/folder"], 1, "There is no folder"),
    ],
)
def test_bad_input_gets_a_sentence_and_an_exit_code(arguments: list[str], code: int, says: str) -> None:
    done = ask(*arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    done = ask(QUESTION, "--model", str(tmp_path))
    assert done.returncode == 1
    assert "no *.safetensors" in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_keeps_the_partial_answer_and_exits_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ladechat", "ask", "Count from one to ninety, then tell me everything.", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr
    written = b""
    interrupted = False
    for line in process.stdout:
        written += line
        if b'"event":"step"' in line and not interrupted:
            process.send_signal(signal.SIGINT)
            interrupted = True
    assert process.wait(PATIENCE) == 130
    assert b"Traceback" not in process.stderr.read()
    events = [decode_event(line) for line in written.split(b"\n") if line]
    assert isinstance(events[-2], TurnFinished)
    assert "".join(p for e in events if isinstance(e, Step) for p in e.pieces) == events[-2].text


def test_ctrl_c_while_it_loads_exits_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ladechat", "ask", QUESTION, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert b"Traceback" not in process.stderr.read()


def test_a_reader_that_leaves_is_no_error_to_speak_of() -> None:
    command = f"{sys.executable} -m ladechat ask '{QUESTION}' --json | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


class Screen(io.StringIO):
    """What a terminal was given."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_what_would_steer_a_terminal_is_made_visible_there_and_goes_into_a_pipe_as_it_is(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out, error = (Screen(), Screen()) if terminal else (io.StringIO(), io.StringIO())
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    steps = [step(["a\x1b[2J"]), step(["\x9b31m", "\u202e\tb\n"], index=1)]
    printer = AnswerPrinter()
    for event in (Loading(stage=1, stages=1, doing="reading \x1b]0;title\x07"), *steps, finished(steps)):
        printer.show(event)
    printer.end()
    if terminal:
        shown = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
        assert shown.startswith("a\\x1b[2J\\x9b31m\\u202e") and shown.replace("\n", "").isprintable()
        assert "reading \\x1b]0;title\\x07" in error.getvalue()
    else:
        assert out.getvalue() == "a\x1b[2J\x9b31m\u202e\tb\n\n"
