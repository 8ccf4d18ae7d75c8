"""Standard streams that are closed, or go elsewhere: a sentence and an end, never a traceback or a blank screen."""

import itertools
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pytest
from typer.testing import CliRunner

from ladechat.shell import cli
from tests.session.streams import GOLDEN
from tests.waiting import patience

CLOSED = [closed for count in (1, 2, 3) for closed in itertools.combinations((0, 1, 2), count)]


class OnTerminal:
    """A command on a terminal of its own, with redirections as a shell makes them."""

    def __init__(
        self,
        arguments: Sequence[str],
        redirections: str,
        program: Sequence[str] = ("-m", "ladechat"),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._terminal, child = pty.openpty()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, *program, *arguments],
            stdin=child,
            stdout=child,
            stderr=child,
            env={**os.environ, "TERM": "xterm-256color", "HF_HUB_OFFLINE": "1", **environment},
            start_new_session=True,
        )
        os.close(child)

    def end(self) -> tuple[int, str]:
        """Its exit code, and all that it has written on the terminal."""
        written = read_out(self._terminal)
        return self.process.wait(patience()), written.decode(errors="replace")


def read_out(source: int) -> bytes:
    """All that comes from a pipe or a terminal until nobody writes to it any more. It is closed then."""
    written = b""
    try:
        while part := os.read(source, 1 << 16):
            written += part
    except OSError:  # as a terminal whose last program has ended says it on Linux
        pass
    finally:
        os.close(source)
    return written


def redirections(closed: Sequence[int]) -> str:
    return " ".join("<&-" if number == 0 else f"{number}>&-" for number in closed)


ASK = ["ask", "What is it?", "--model", "nowhere/none"]
ASK_FROM_A_PIPE = ["ask"]
ENGINE = ["engine", "--model", "nowhere/none"]
BENCH = ["bench", "--questions", "nothing"]
APP: list[str] = []
REPLAY = ["replay", str(GOLDEN[-1])]


SPEAKS = """
import os
from ladechat.terminal import make_streams_safe, missing_streams, say
missing = sorted(missing_streams())
make_streams_safe()
say(f"closed {missing}")
print("an answer")
raise SystemExit(3 if os.open(os.devnull, os.O_RDONLY) > 2 else 4)
"""


@pytest.mark.parametrize("closed", CLOSED)
def test_whichever_streams_are_closed_nothing_else_gets_their_numbers_and_a_sentence_is_seen(
    closed: tuple[int, ...],
) -> None:
    code, written = OnTerminal([], redirections(closed), ("-c", SPEAKS)).end()
    assert code == 3 and "Traceback" not in written
    assert (f"ladechat: closed {list(closed)}" in written) == (not {1, 2} <= set(closed))
    assert ("an answer" in written) == (1 not in closed)


@pytest.mark.parametrize(
    ("arguments", "needed", "closed"),
    [
        (ASK_FROM_A_PIPE, {0, 1}, (0, 1)),
        (ASK, {1}, (0, 2)),
        (ENGINE, {0, 1}, (2,)),
        (BENCH, {1}, (0, 2)),
        (APP, {0, 1, 2}, (2,)),
        (APP, {0, 1, 2}, (0, 1, 2)),
        (REPLAY, {0, 1, 2}, (0,)),
    ],
)
def test_whichever_streams_are_closed_a_command_ends_and_says_why(
    arguments: list[str], needed: set[int], closed: tuple[int, ...]
) -> None:
    code, written = OnTerminal(arguments, redirections(closed)).end()
    assert "Traceback" not in written and "\x1b[?1049h" not in written
    assert code in (1, 2)
    if needed & set(closed):
        assert code == 2
        if not {1, 2} <= set(closed):
            assert "ladechat: " in written


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (ASK, {1}),
        (ASK_FROM_A_PIPE, {1}),
        (ENGINE, {0, 1}),
        (BENCH, {1}),
        (["tune"], {1}),
        (["race", "What is it?"], {1}),
    ],
    ids=["ask", "ask from a pipe", "engine", "bench", "tune", "race"],
)
def test_a_command_begins_nothing_without_the_streams_that_it_needs(
    arguments: list[str], needed: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for closed in CLOSED:
        monkeypatch.setattr("ladechat.checks.missing_streams", lambda closed=closed: frozenset(closed))
        if needed & set(closed):
            result = CliRunner().invoke(cli.app, arguments)
            assert result.exit_code == 2, closed
            assert "is closed, and this command needs it" in result.stderr, closed


@pytest.mark.parametrize(
    ("arguments", "target"), [(APP, "2>/dev/null"), (REPLAY, "2>&1 2>/dev/full")], ids=["app", "replay"]
)
def test_a_screen_that_would_be_drawn_elsewhere_is_refused_on_the_terminal(arguments: list[str], target: str) -> None:
    code, written = OnTerminal(arguments, target).end()
    assert (code, "drawn on standard error" in written, "\x1b[?1049h" in written) == (2, True, False)


WRITES = """
import sys
from ladechat.terminal import make_streams_safe
make_streams_safe()
for stream in (sys.stdout, sys.stderr):
    print("é – 你好 \\udcff", file=stream)
"""


@pytest.mark.parametrize(
    ("encoding", "written"), [("ascii", "? ? ?? ?"), ("iso-8859-1", "é ? ?? ?"), ("utf-8", "é – 你好 ?")]
)
def test_what_an_encoding_has_no_character_for_is_replaced_and_all_else_written(encoding: str, written: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", WRITES], env=environment, capture_output=True, check=True)
    assert done.stdout.decode(encoding) == done.stderr.decode(encoding) == f"{written}\n"


WRITES_MUCH = """
import sys
from ladechat.terminal import make_streams_safe
make_streams_safe()
print("x" * 300_000, "the end", file=getattr(sys, sys.argv[1]))
print("y" * 300_000, "the end", file=getattr(sys, f"__{sys.argv[1]}__"))
"""
"""Into pipes that hold 65,536 bytes, and terminals that hold 4,096. Textual writes to the second."""


@pytest.mark.parametrize("options", [(), ("-u",)], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("open_both", [os.pipe, pty.openpty], ids=["pipe", "terminal"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_pipe_or_terminal_that_does_not_block_is_waited_for_and_nothing_is_lost(
    stream: str, open_both: Callable[[], tuple[int, int]], options: Sequence[str]
) -> None:
    ours, its = open_both()
    os.set_blocking(its, False)
    arguments = [sys.executable, *options, "-c", WRITES_MUCH, stream]
    stdout, stderr = (its if name == stream else subprocess.DEVNULL for name in ("stdout", "stderr"))
    with subprocess.Popen(arguments, stdout=stdout, stderr=stderr) as process:
        os.close(its)
        written = read_out(ours)
    assert process.returncode == 0
    assert written.split() == [b"x" * 300_000, b"the", b"end", b"y" * 300_000, b"the", b"end"]


READS = """
import os, signal, sys
from ladechat.terminal import make_streams_safe
make_streams_safe()
writer, most = map(int, sys.argv[1:])
def come(*_):
    os.write(writer, "spät".encode())
    os.close(writer)
signal.signal(signal.SIGALRM, come)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(ascii(sys.stdin.read(most)))
"""
"""Reads before anything has come."""


@pytest.mark.parametrize("most", [-1, 3, 100])
def test_an_empty_pipe_that_does_not_block_is_waited_for(most: int) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    arguments = [sys.executable, "-c", READS, str(writer), str(most)]
    with subprocess.Popen(arguments, stdin=reader, stdout=subprocess.PIPE, pass_fds=[writer], text=True) as process:
        os.close(reader)
        os.close(writer)
        read = process.communicate()[0]
    assert read.strip() == ascii("spät"[:most] if most > 0 else "spät")


@pytest.mark.parametrize(
    ("arguments", "variable", "value", "named"),
    [
        (APP, "PYTHONIOENCODING", "ascii", "encoding is ascii"),
        (REPLAY, "PYTHONIOENCODING", "iso-8859-1", "encoding is iso"),
        (["learn"], "TERM", "dumb", "TERM=dumb"),
        (["race", "What is it?"], "TERM", "unknown", "TERM=unknown"),
        (REPLAY, "TEXTUAL_DRIVER", "nonsense", "unset TEXTUAL_DRIVER"),
        (REPLAY, "TEXTUAL_COLOR_SYSTEM", "foo", "unset TEXTUAL_COLOR_SYSTEM"),
    ],
)
def test_a_terminal_that_cannot_show_the_app_is_refused_in_a_sentence(
    arguments: list[str], variable: str, value: str, named: str
) -> None:
    code, written = OnTerminal(arguments, "", environment={variable: value}).end()
    assert (code, written.count("ladechat: "), named in written) == (2, 1, True)
    assert "\x1b[?1049h" not in written and "Traceback" not in written


@pytest.mark.full
def test_an_answer_that_cannot_be_written_is_said_in_a_sentence() -> None:
    run = OnTerminal(["ask", "Hello?", "--max-new-tokens", "3"], ">/dev/full")
    code, written = run.end()
    assert code == 1 and "No space left on device" in written and "Traceback" not in written
