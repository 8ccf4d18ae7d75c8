"""The engine's input: no line makes it deaf, and its end ends the process, whatever that is doing."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from ladechat.engine_process import watcher
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.protocol import Ping, Pong, ProtocolError, Shutdown, Stop, decode_event, encode
from tests.waiting import brings, patience, wait_for

DEEP = b'{"command":"generate","turn":1,"messages":' + b"[" * 100_000 + b"\n"


@pytest.fixture
def wires() -> tuple[int, Inbox]:
    """An input that is written to, and who reads it. It stays open: its end would end this process."""
    reader, writer = os.pipe()
    return writer, Inbox(reader, EventStream(os.open(os.devnull, os.O_WRONLY)))


def test_a_deeply_nested_line_is_a_bad_command_and_the_next_one_is_heard(wires: tuple[int, Inbox]) -> None:
    writer, inbox = wires
    threading.Thread(target=os.write, args=(writer, DEEP + encode(Stop()))).start()
    first, second = inbox.wait(), inbox.wait()
    assert isinstance(first, ProtocolError) and "nested" in str(first)
    assert second == Stop()


def test_whatever_a_line_provokes_the_next_one_is_heard(
    wires: tuple[int, Inbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, inbox = wires
    answers = iter([MemoryError(), None])

    def decode(line: bytes) -> Stop:
        """As the memory that is used up at the first line."""
        error = next(answers)
        if error is not None:
            raise error
        return Stop()

    monkeypatch.setattr("ladechat.engine_process.stream.decode_command", decode)
    os.write(writer, encode(Stop()) * 2)
    first, second = inbox.wait(), inbox.wait()
    assert isinstance(first, ProtocolError) and "MemoryError" in str(first)
    assert second == Stop()


def test_an_input_that_does_not_block_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts an engine may have set that on the pipe that both share."""
    reader, writer = os.pipe()
    wait, waits = select.select, list[list[int]]()

    def noted(read: list[int], write: list[int], other: list[int]) -> object:
        waits.append(read)
        return wait(read, write, other)

    monkeypatch.setattr("select.select", noted)
    os.set_blocking(reader, False)
    inbox = Inbox(reader, EventStream(os.open(os.devnull, os.O_WRONLY)))
    wait_for(lambda: [reader] in waits)
    os.write(writer, encode(Stop()))
    assert inbox.wait() == Stop()


@pytest.mark.parametrize("says", [encode(Shutdown()), b""], ids=["a shutdown", "the end of the input"])
def test_a_shutdown_and_the_end_of_the_input_end_the_process(says: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    stream = EventStream(os.open(os.devnull, os.O_WRONLY))
    ended: list[str] = []
    monkeypatch.setattr(stream, "end_process", lambda: ended.append("ended"))
    inbox = Inbox(reader, stream)
    os.write(writer, encode(Stop()))
    assert inbox.wait() == Stop()
    with brings(lambda: ended):
        os.write(writer, says)
        os.close(writer)
    assert inbox.poll() is None


def test_a_ping_is_answered_while_nobody_takes_commands() -> None:
    reader, writer = os.pipe()
    events, to_here = os.pipe()
    inbox = Inbox(reader, EventStream(to_here))
    os.write(writer, encode(Ping()) + encode(Stop()))
    with os.fdopen(events, "rb") as lines:
        assert isinstance(decode_event(lines.readline()), Pong)
    assert inbox.wait() == Stop(), "a ping is no command for the engine"


def test_pings_to_an_engine_whose_events_nobody_reads_do_not_keep_it_from_its_commands() -> None:
    reader, writer = os.pipe()
    _, to_here = os.pipe()
    os.set_blocking(to_here, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(to_here, b"x" * 4096):
            pass
    inbox = Inbox(reader, EventStream(to_here))
    os.write(writer, encode(Ping()) + encode(Stop()))
    assert inbox.wait() == Stop()


@contextlib.contextmanager
def python(code: str, stdin: int = subprocess.PIPE) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python that runs this, and ends with the test."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


LONG_OPERATION = """
import os, ctypes
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.engine_process.watcher import watch_input
from ladechat.protocol import Loading
stream = EventStream.take_over_stdout(); Inbox(0, stream); watch_input(0, grace_seconds=0.2)
stream.emit(Loading(stage=1, stages=1, doing='what takes minutes'))
ctypes.{call}
os._exit(5)
"""


@pytest.mark.parametrize(
    ("call", "exit_code"),
    [
        ("PyDLL(None).sleep(600)", -signal.SIGKILL),
        ("PyDLL(None).kill(os.getpid(), 19)", -signal.SIGKILL),
        ("CDLL(None).sleep(600)", 0),
    ],
    ids=["holding the interpreter lock", "frozen", "computing without it"],
)
def test_the_end_of_the_input_ends_an_engine_in_the_middle_of_one_long_operation(call: str, exit_code: int) -> None:
    """No thread of Python runs while one call holds the lock, as a template that computes one huge number does. torch
    gives it away while it computes.
    """
    with python(LONG_OPERATION.replace("{call}", call)) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        process.stdin.close()
        assert process.wait(timeout=patience()) == exit_code


def test_the_end_of_the_input_ends_an_engine_whose_events_nobody_reads() -> None:
    """A parent that hangs must not leave an engine, and with it a GPU's memory, behind."""
    code = (
        "import os, threading\n"
        "from ladechat.engine_process.stream import EventStream, Inbox\n"
        "from ladechat.protocol import Loading\n"
        "stream = EventStream.take_over_stdout()\n"
        "def emit():\n"
        "    while True: stream.emit(Loading(stage=1, stages=1, doing='x' * 4096))\n"
        "os.set_blocking(stream._descriptor, False)\n"
        "try:\n"
        "    while True: os.write(stream._descriptor, b'x')\n"
        "except BlockingIOError:\n"
        "    os.set_blocking(stream._descriptor, True)\n"
        "threading.Thread(target=emit, daemon=True).start()\n"
        "while not stream._lock.locked(): pass\n"
        "Inbox(0, stream); os.write(2, b'full')\n"
        "threading.Event().wait()\n"
    )
    with python(code) as process:
        assert process.stdin is not None and process.stderr is not None
        assert process.stderr.read(4) == b"full"
        process.stdin.close()
        assert process.wait(timeout=patience()) == 0


def test_what_watches_the_input_ends_with_the_engine() -> None:
    code = (
        "import os\n"
        "from ladechat.engine_process.watcher import watch_input\n"
        "print(watch_input(0, grace_seconds=0.2).pid, flush=True)\n"
        "os.read(0, 1); os._exit(3)\n"
    )
    reader, writer = os.pipe()  # this end stays open: the watcher has to see the end of the engine, not of the input
    with python(code, reader) as process:
        os.close(reader)
        assert process.stdout is not None
        watcher = int(process.stdout.readline())
        with brings(lambda: is_gone(watcher)):
            os.write(writer, b"x")
            assert process.wait(timeout=patience()) == 3
    os.close(writer)


class PollOfMacOS:
    """Reports what was asked for and no more: a `poll` for nothing never returns, not even at the end of a pipe."""

    made = select.poll

    def __init__(self) -> None:
        self._poll, self._asked = self.made(), dict[int, int]()

    def register(self, descriptor: int, events: int) -> None:
        self._asked[descriptor] = events
        self._poll.register(descriptor, events)

    def poll(self, milliseconds: float | None = None) -> list[tuple[int, int]]:
        found = [(descriptor, events) for descriptor, events in self._poll.poll(0) if self._asked[descriptor]]
        assert found or milliseconds is not None, "It waits for ever."
        return found


@pytest.mark.parametrize("left", [b"", b"a command that nobody reads\n"], ids=["nothing to read", "something to read"])
def test_where_poll_reports_only_what_was_asked_for_an_engine_is_ended_after_its_input(
    left: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.write(writer, left)
    to_close, killed = [writer], list[tuple[int, int]]()
    monkeypatch.setattr(select, "poll", PollOfMacOS)
    monkeypatch.setattr(watcher, "_HANG_UP", select.POLLHUP)
    monkeypatch.setattr("time.sleep", lambda _: os.close(to_close.pop()))
    monkeypatch.setattr(os, "kill", lambda *whom: killed.append(whom))
    watcher.watch(reader, os.getppid(), grace_seconds=0.0)
    assert killed == [(os.getppid(), signal.SIGKILL)] and not to_close
    os.close(reader)


def test_where_poll_reports_only_what_was_asked_for_the_watcher_ends_with_the_engine(
    wires: tuple[int, Inbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = [7, 7, 1]  # with its parent gone, a process is given to process 1
    monkeypatch.setattr(select, "poll", PollOfMacOS)
    monkeypatch.setattr(os, "getppid", lambda: engines.pop(0))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("There is nothing to end."))
    watcher.watch(wires[0], 7, grace_seconds=0.0)
    assert engines == []


def is_gone(process: int) -> bool:
    """Whether a process that is no child of this one has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return False
    return True
