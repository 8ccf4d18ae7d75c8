"""The engine's input and output: a stream of events, and an inbox of commands."""

import os
import queue
import select
import threading
import time
from collections.abc import Iterator
from typing import NoReturn

import msgspec

from ladechat.protocol import (
    MAX_LINE_BYTES,
    Command,
    Event,
    Ping,
    Pong,
    ProtocolError,
    Shutdown,
    Stop,
    decode_command,
    encode,
)

SECONDS_FOR_A_LINE = 1.0
"""How long the process, when it ends, waits for a line that is being written: its reader may hang."""

TOO_LONG = ProtocolError(f"it is longer than {MAX_LINE_BYTES // 2**20} MiB")


class EventStream:
    """Writes events to a file descriptor, one line each, with a sequence number and a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._seq = 0

    @classmethod
    def take_over_stdout(cls) -> "EventStream":
        """Save the real standard output for events and point descriptor 1 at 2: no print can break the stream."""
        descriptor = os.dup(1)
        os.dup2(2, 1)
        return cls(descriptor)

    def emit(self, *events: Event) -> None:
        """Give events their numbers and times, and write them at once: each write wakes the reader.

        If nobody reads, the process ends.
        """
        with self._lock:
            lines = bytearray()
            try:
                for event in events:
                    lines += encode(msgspec.structs.replace(event, seq=self._seq, t=time.monotonic() - self._started))
                    self._seq += 1
            finally:  # also where one cannot be encoded
                self._write(bytes(lines))

    def _write(self, lines: bytes) -> None:
        while lines:
            try:
                lines = lines[os.write(self._descriptor, lines) :]
            except BlockingIOError:  # another process has made the pipe non-blocking, and it is full
                select.select([], [self._descriptor], [])
            except BrokenPipeError:
                os._exit(0)

    def end_process(self, exit_code: int = 0) -> NoReturn:
        """End the process, whatever it is doing: between two lines, unless the reader does not take the current one."""
        self._lock.acquire(timeout=SECONDS_FOR_A_LINE)
        os._exit(exit_code)


class Inbox:
    """Reads commands in a thread of its own. A shutdown, or the end of the input, ends the process in any state.

    Pings are answered by another thread, at once: this one must not wait for a reader who does not read.

    Attributes:
        stop_came: whether a stop was among the commands so far.
    """

    def __init__(self, descriptor: int, stream: EventStream) -> None:
        self._descriptor = descriptor
        self._stream = stream
        self.stop_came = False
        self._queue: queue.SimpleQueue[Command | ProtocolError] = queue.SimpleQueue()
        self._pings: queue.SimpleQueue[Ping | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="commands", daemon=True).start()
        threading.Thread(target=self._answer_pings, name="pings", daemon=True).start()

    def wait(self) -> Command | ProtocolError:
        """Wait for the next command; return it, or an error for a line that is none."""
        return self._queue.get()

    def poll(self, seconds: float | None = 0.0) -> Command | ProtocolError | None:
        """Return the next command; None if none comes within `seconds`, which may be None: without end."""
        try:
            return self._queue.get(timeout=seconds if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        except queue.Empty:
            return None

    def _read(self) -> None:
        # No line, and no error it raises, ends this thread: the engine could not be reached any more.
        for line in self._lines():
            try:
                command = line if isinstance(line, ProtocolError) else self._command(line)
            except Exception as error:  # whatever a line raises, also when the memory is used up
                command = ProtocolError(f"it could not be read ({type(error).__name__})")
            if isinstance(command, Shutdown):
                break
            if isinstance(command, Ping):
                self._pings.put(command)
            elif command is not None:
                self.stop_came |= isinstance(command, Stop)
                self._queue.put(command)
        self._pings.put(None)
        self._stream.end_process()

    def _answer_pings(self) -> None:
        for _ in iter(self._pings.get, None):
            self._stream.emit(Pong())

    @staticmethod
    def _command(line: bytes) -> Command | ProtocolError | None:
        """Return the command in a line; None for an empty line or a kind that this version does not know."""
        try:
            return decode_command(line) if line.strip() else None
        except ProtocolError as error:
            return error

    def _lines(self) -> Iterator[bytes | ProtocolError]:
        """Yield lines up to the end of the input; for a line that is too long, an error.

        No buffered reader: its lock, held by a waiting thread, would abort Python when it exits.
        """
        unfinished: list[bytes] = []
        length = 0
        while part := self._part():
            *ended, rest = part.split(b"\n")
            for end in ended:
                length += len(end)
                yield TOO_LONG if length > MAX_LINE_BYTES else b"".join((*unfinished, end))
                unfinished.clear()
                length = 0
            length += len(rest)
            if length <= MAX_LINE_BYTES:
                unfinished.append(rest)
            else:
                unfinished.clear()
        yield b"".join(unfinished)

    def _part(self) -> bytes:
        """Return the bytes that have come, at least one; none at the end of the input, or where it cannot be read."""
        while True:
            try:
                return os.read(self._descriptor, 1 << 16)
            except BlockingIOError:  # another process has made the pipe non-blocking
                select.select([self._descriptor], [], [])
            except OSError:
                return b""
