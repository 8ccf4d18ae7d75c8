"""A recording: the event stream, written to a file as it comes (docs/recording.md)."""

import errno
import os
import re
import threading
import time
from datetime import datetime
from pathlib import Path

import msgspec
from platformdirs import user_data_path

from ladechat.protocol import (
    Asked,
    Closed,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    Header,
    Ready,
    SettingsApplied,
    TurnFinished,
    encode,
)

SUFFIX = ".ladechat.jsonl"
PRIVATE = 0o600


def default_path(model: str) -> Path:
    """Where a recording without a name goes: into the user's data folder, named by time and model."""
    name = re.sub(r"[^\w.-]+", "-", model.rstrip("/").rsplit("/", 1)[-1])
    return user_data_path("ladechat") / "recordings" / f"{datetime.now():%Y-%m-%d-%H%M%S}-{name}{SUFFIX}"


class Recorder:
    """Sees every event on its way to the screen, and writes them to a file while it is switched on.

    A recording that begins in the middle starts with what every reader needs first, the header, the model and the
    settings, and with the whole of the turn that is under way.

    Attributes:
        path: the file that is being written; None while switched off.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self._descriptor = -1
        self._header: Header | None = None
        self._ready: Ready | None = None
        self._settings: SettingsApplied | None = None
        self._turn: list[Event] = []
        self._waiting: list[Event] = []
        self._last = Event()
        self._clock_at_zero = 0.0

    def start(self, path: Path) -> None:
        """Begin a new file, which only its user may read.

        Raises:
            FileExistsError: there is one already; recordings are never overwritten.
            OSError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:  # a file stands where its folder should be
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from error
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE)
        self.path = path
        known = [event for event in (self._header, self._ready, self._settings) if event is not None]
        for event in (*known, *self._turn):
            self._write_event(event)

    def stop(self) -> None:
        """End the file with its closing line. A file that is still empty is removed.

        Raises:
            OSError: that could not be written.
        """
        if self.path is None:
            return
        try:
            if self._header is None:
                self.path.unlink(missing_ok=True)
            else:
                self._write(self._stamped(Closed()))
                os.fsync(self._descriptor)
        finally:
            self._close_file()

    def record(self, event: Event) -> None:
        """Take in an event of the engine, whether a recording is running or not.

        Raises:
            OSError: it could not be written; the recording has ended, with what was written before.
        """
        self._last = event
        if isinstance(event, Header):
            self._header, self._ready, self._settings = event, None, None
            self._clock_at_zero = time.monotonic() - event.t
        elif isinstance(event, Ready):
            self._ready = event
        elif isinstance(event, SettingsApplied):
            self._settings = event
        self._remember(event)
        self._write_event(event)
        if isinstance(event, Header):
            waiting, self._waiting = self._waiting, []
            for early in waiting:
                self.record_own(early)

    def record_own(self, event: Event) -> None:
        """Take in an event that the user's side adds to the stream. Before the header it waits for that.

        Raises:
            OSError: as `record`.
        """
        if self._header is None:
            self._waiting.append(event)
            return
        event = self._stamped(event)
        self._remember(event)
        self._write_event(event)

    def _stamped(self, event: Event) -> Event:
        t = max(self._last.t, time.monotonic() - self._clock_at_zero)
        return msgspec.structs.replace(event, seq=self._last.seq, t=t)

    def _remember(self, event: Event) -> None:
        """Keep the events of the turn that is under way, from its question on."""
        if isinstance(event, Asked):
            self._turn = [event]
        elif isinstance(event, TurnFinished | ConversationCleared | ConversationOpened | ExchangeRemoved | Header):
            self._turn.clear()
        elif self._turn:
            self._turn.append(event)

    def _write_event(self, event: Event) -> None:
        if self.path is None:
            return
        try:
            self._write(event)
            if isinstance(event, TurnFinished):
                sync_in_background(self._descriptor)
        except OSError:
            self._close_file()
            raise

    def _write(self, event: Event) -> None:
        write_whole(self._descriptor, encode(event))

    def _close_file(self) -> None:
        os.close(self._descriptor)
        self.path, self._descriptor = None, -1


def write_whole(descriptor: int, line: bytes) -> None:
    """Write all of a line, however little of it the system takes at a time."""
    while line:
        line = line[os.write(descriptor, line) :]


def sync_in_background(descriptor: int) -> None:
    """Flush to the disk in a thread: the screen does not wait for it."""
    threading.Thread(target=_sync, args=(os.dup(descriptor),), name="fsync").start()


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # a pipe, or a disk that is gone: the next line that is written says so
    finally:
        os.close(descriptor)
