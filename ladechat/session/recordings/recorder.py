"""A recording: the event stream, written to a file as events arrive (docs/recording.md)."""

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path

import msgspec
from platformdirs import user_data_path

from ladechat.files import create_private, is_there, matching, sync_in_background, write_whole
from ladechat.protocol import (
    Asked,
    Closed,
    ConversationCleared,
    ConversationOpened,
    Event,
    Header,
    Ready,
    SettingsApplied,
    SystemPrompt,
    TurnFinished,
    encode,
)

SUFFIX = ".ladechat.jsonl"
MOST_REMEMBERED = 4000
"""The number of events of a conversation that are remembered for a recording that starts later, up to 32 MB; more if
the last answer alone has more, as it is always complete.
"""


def recordings_folder() -> Path:
    """Return the folder for recordings without a given name, in the user's data folder."""
    return user_data_path("ladechat") / "recordings"


def default_path(model: str) -> Path:
    """Return the path for a recording without a given name, named by time and model."""
    name = re.sub(r"[^\w.-]+", "-", model.rstrip("/").rsplit("/", 1)[-1])
    return recordings_folder() / f"{datetime.now():%Y-%m-%d-%H%M%S}-{name}{SUFFIX}"


def latest_recording(folder: Path) -> Path | None:
    """Return the latest recording of a folder, by the times in their names; None if there is none, or if the folder
    cannot be read (`ladechat.files.why_unread`).
    """
    return max(matching(folder, f"*{SUFFIX}"), default=None)


class Recorder:
    """Receives every event on its way to the screen, and writes it to a file while a recording is running.

    A recording that starts in the middle begins with what every reader needs first, the header, the model and the
    settings, and with the conversation on the screen. All these events have the time 0, and time continues from there.

    A file that is removed during the recording is written again, with all its content.

    Attributes:
        path: the file of the running recording; None without one.
        left: the file of the last recording that has ended; None if there is none.
        shortened: whether the conversation on the screen is longer than the part that is remembered.
        failed: called when a recording has ended because it could not be written; what was written before is in `left`.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.left: Path | None = None
        self.shortened = False
        self.failed: Callable[[OSError], None] = lambda _: None
        self._descriptor = -1
        self._head: dict[type[Event], Event] = {}
        self._past: list[Event] = []
        self._waiting: list[Event] = []
        self._last = Event()
        self._clock_at_zero = 0.0
        self._began = 0.0
        self._left_out = 0

    def start(self, path: Path) -> None:
        """Start a new file, which only its owner can read.

        Raises:
            FileExistsError: the file exists already; recordings are never overwritten.
            OSError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:  # there is a file where its folder should be
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from error
        self._descriptor = create_private(path)
        self.path = path
        self._began = self._now() if self._head else 0.0
        started = datetime.now().astimezone().isoformat()
        for event in (*self._head.values(), *self._past):
            if isinstance(event, Header):
                event = msgspec.structs.replace(event, started=started)
            self._write_event(msgspec.structs.replace(event, t=0.0))

    def stop(self) -> Path | None:
        """Write the closing line and close the file. A file that is still empty is removed.

        Returns:
            The file; None if there is none, or if the closing line could not be written.
        """
        if self.path is None:
            return None
        try:
            try:
                if not self._head:
                    self.path.unlink(missing_ok=True)
                else:
                    self._write(self._stamped(Closed()))
                    os.fsync(self._descriptor)
            finally:
                self._close_file()
        except OSError as error:  # also in closing: a file system may only then say that it is full
            self.failed(error)
            return None
        return self.left

    def conversation(self) -> list[Event]:
        """Return the conversation on the screen as a recording, with its times; of a long one the latest part.

        Empty if nothing has been asked.
        """
        return [*self._head.values(), *self._past, self._stamped(Closed())] if self._past else []

    def record(self, event: Event) -> None:
        """Process an event of the engine, whether a recording is running or not. Before a header it is held."""
        if not (self._head or isinstance(event, Header)):
            self._waiting.append(event)
            return
        if self._left_out and not isinstance(event, Header):
            event = msgspec.structs.replace(event, seq=event.seq - self._left_out)
        self._last = event
        if isinstance(event, Header):
            self._clock_at_zero = time.monotonic() - event.t
            self._began, self._left_out = 0.0, 0
        else:  # a delayed header comes late: the events after it give a lower bound of the delay
            self._clock_at_zero = min(self._clock_at_zero, time.monotonic() - event.t)
        self._add(event)
        if isinstance(event, Header):
            waiting, self._waiting = self._waiting, []
            for early in waiting:
                self.record_own(early)

    def leave_out(self) -> None:
        """Skip an event of the engine that is not the session's: later events are numbered as if it did not exist."""
        self._left_out += 1

    def record_own(self, event: Event) -> None:
        """Add an event of the user's side to the stream. Before the header it is held until that comes."""
        if self._head:
            self._add(self._stamped(event))
        else:
            self._waiting.append(event)

    def _add(self, event: Event) -> None:
        self._remember(event)
        try:
            self._write_event(event)
        except OSError as error:
            self.failed(error)

    def _stamped(self, event: Event) -> Event:
        return msgspec.structs.replace(event, seq=self._last.seq, t=self._now())

    def _now(self) -> float:
        """Return the time on the engine's clock, not before its last event."""
        return max(self._last.t, time.monotonic() - self._clock_at_zero)

    def _remember(self, event: Event) -> None:
        """Remember what is on the screen: the conversation from its first question on, or the latest part of it."""
        if isinstance(event, ConversationCleared | ConversationOpened):
            self._forget(len(self._past))
            self.shortened = False
        self._past.append(event)
        if not isinstance(self._past[0], Asked | ConversationOpened):
            self._forget(len(self._past))
        if isinstance(event, Asked) and len(self._past) > MOST_REMEMBERED:  # never within an answer, event by event
            forgotten = self._first_to_keep()
            self._forget(forgotten)
            self.shortened = self.shortened or forgotten > 0

    def _first_to_keep(self) -> int:
        """Return the index of the first question to keep: recent, but no later than the last question but one."""
        questions = [place for place, event in enumerate(self._past) if isinstance(event, Asked)]
        recent = (place for place in questions if place >= len(self._past) - MOST_REMEMBERED)
        return min(next(recent), *questions[-2:])

    def _forget(self, count: int) -> None:
        """Drop the earliest events, except those that are needed to read the rest."""
        for event in self._past[:count]:
            if isinstance(event, Header):
                said = self._head.get(SystemPrompt)  # the user's side keeps it when an engine is restarted
                self._head = {Header: event} | ({SystemPrompt: said} if said else {})
            elif isinstance(event, Ready | SettingsApplied | SystemPrompt):
                self._head[type(event)] = event
        del self._past[:count]

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
        assert self.path is not None
        if not is_there(self._descriptor, self.path):
            self._write_anew(self.path)
        event = msgspec.structs.replace(event, t=max(event.t - self._began, 0.0)) if self._began else event
        write_whole(self._descriptor, encode(event))

    def _write_anew(self, path: Path) -> None:
        """Write the removed file again: while it is open, its content can still be read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, self.path = _create_free_name(path)
        with os.fdopen(self._descriptor, "rb", buffering=0) as removed:
            self._descriptor = descriptor
            removed.seek(0)
            while part := removed.read(1 << 20):
                write_whole(descriptor, part)

    def _close_file(self) -> None:
        self.left = self.path if self.path is not None and is_there(self._descriptor, self.path) else None
        descriptor, self.path, self._descriptor = self._descriptor, None, -1
        os.close(descriptor)


def _create_free_name(path: Path) -> tuple[int, Path]:
    """Create a file of this name, or if that exists, of this name with a number."""
    ending = SUFFIX if path.name.endswith(SUFFIX) else path.suffix
    name = path.name.removesuffix(ending)
    for number in count(2):
        with contextlib.suppress(FileExistsError):
            return create_private(path), path
        path = path.with_name(f"{name}-{number}{ending}")
    raise AssertionError("There is always another number.")
