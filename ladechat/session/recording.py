"""A recording: the event stream, written to a file as it comes (docs/recording.md)."""

import contextlib
import errno
import os
import re
import time
from datetime import datetime
from itertools import count
from pathlib import Path

import msgspec
from platformdirs import user_data_path

from ladechat.files import matching
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
from ladechat.session.appending import create, is_there, sync_in_background, write_whole

SUFFIX = ".ladechat.jsonl"
MOST_REMEMBERED = 4000
"""Events of a conversation that are kept for a recording which begins later, up to 32 MB; more where the last answer
alone has more: it is kept whole."""


def recordings_folder() -> Path:
    """Where recordings without a name go: into the user's data folder."""
    return user_data_path("ladechat") / "recordings"


def default_path(model: str) -> Path:
    """Where a recording without a name goes, named by time and model."""
    name = re.sub(r"[^\w.-]+", "-", model.rstrip("/").rsplit("/", 1)[-1])
    return recordings_folder() / f"{datetime.now():%Y-%m-%d-%H%M%S}-{name}{SUFFIX}"


def latest_recording(folder: Path) -> Path | None:
    """The latest recording of a folder, by the times in their names; None without any, and where it cannot be read
    (`ladechat.files.why_unread`).
    """
    return max(matching(folder, f"*{SUFFIX}"), default=None)


class Recorder:
    """Sees every event on its way to the screen, and writes them to a file while it is switched on.

    A recording that begins in the middle starts with what every reader needs first, the header, the model and the
    settings, and with what is on the screen by then: the conversation so far. All that has the time 0, and time goes on
    from there.

    A file that is removed meanwhile is written anew, with all that was in it.

    Attributes:
        path: the file that is being written; None while switched off.
        left: the file of the recording that has ended last; None if there is none.
        shortened: whether the conversation on the screen is longer than what is kept of it.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.left: Path | None = None
        self.shortened = False
        self._descriptor = -1
        self._head: dict[type[Event], Event] = {}
        self._past: list[Event] = []
        self._waiting: list[Event] = []
        self._last = Event()
        self._clock_at_zero = 0.0
        self._began = 0.0
        self._left_out = 0

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
        self._descriptor = create(path)
        self.path = path
        self._began = self._now() if self._head else 0.0
        started = datetime.now().astimezone().isoformat()
        for event in (*self._head.values(), *self._past):
            if isinstance(event, Header):
                event = msgspec.structs.replace(event, started=started)
            self._write_event(msgspec.structs.replace(event, t=0.0))

    def stop(self) -> Path | None:
        """End the file with its closing line. A file that is still empty is removed.

        Returns:
            The file; None if there is none.

        Raises:
            OSError: that could not be written.
        """
        if self.path is None:
            return None
        try:
            if not self._head:
                self.path.unlink(missing_ok=True)
            else:
                self._write(self._stamped(Closed()))
                os.fsync(self._descriptor)
        finally:
            self._close_file()
        return self.left

    def conversation(self) -> list[Event]:
        """The conversation on the screen as a recording of it, with its times; of a long one the latest part.

        Empty where nothing has been asked.
        """
        return [*self._head.values(), *self._past, self._stamped(Closed())] if self._past else []

    def record(self, event: Event) -> None:
        """Take in an event of the engine, whether a recording is running or not.

        Raises:
            OSError: it could not be written; the recording has ended, with what was written before, if that is there.
        """
        if self._left_out and not isinstance(event, Header):
            event = msgspec.structs.replace(event, seq=event.seq - self._left_out)
        self._last = event
        if isinstance(event, Header):
            self._clock_at_zero = time.monotonic() - event.t
            self._began, self._left_out = 0.0, 0
        else:  # a header that was held back comes late: what happened behind it says how late at least
            self._clock_at_zero = min(self._clock_at_zero, time.monotonic() - event.t)
        self._remember(event)
        self._write_event(event)
        if isinstance(event, Header):
            waiting, self._waiting = self._waiting, []
            for early in waiting:
                self.record_own(early)

    def leave_out(self) -> None:
        """An event of the engine is not the session's: those after it are numbered as if it had not been."""
        self._left_out += 1

    def record_own(self, event: Event) -> None:
        """Take in an event that the user's side adds to the stream. Before the header it waits for that.

        Raises:
            OSError: as `record`.
        """
        if not self._head:
            self._waiting.append(event)
            return
        event = self._stamped(event)
        self._remember(event)
        self._write_event(event)

    def _stamped(self, event: Event) -> Event:
        return msgspec.structs.replace(event, seq=self._last.seq, t=self._now())

    def _now(self) -> float:
        """On the clock of the engine; never before its last event."""
        return max(self._last.t, time.monotonic() - self._clock_at_zero)

    def _remember(self, event: Event) -> None:
        """Keep what is on the screen: the conversation, from its first question on, or the latest part of it."""
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
        """The place of a question: the first among the latest events, or an earlier one, so that an answer is left."""
        questions = [place for place, event in enumerate(self._past) if isinstance(event, Asked)]
        recent = (place for place in questions if place >= len(self._past) - MOST_REMEMBERED)
        return min(next(recent), *questions[-2:])

    def _forget(self, count: int) -> None:
        """Let the earliest events go, all but what the rest is read with."""
        for event in self._past[:count]:
            if isinstance(event, Header):
                said = self._head.get(SystemPrompt)  # the user's side keeps it when an engine is started anew
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
        """Write the file that was removed once more: as long as it is open, what was in it can be read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, self.path = _create_beside(path)
        with os.fdopen(self._descriptor, "rb", buffering=0) as removed:
            self._descriptor = descriptor
            removed.seek(0)
            while part := removed.read(1 << 20):
                write_whole(descriptor, part)

    def _close_file(self) -> None:
        self.left = self.path if self.path is not None and is_there(self._descriptor, self.path) else None
        os.close(self._descriptor)
        self.path, self._descriptor = None, -1


def _create_beside(path: Path) -> tuple[int, Path]:
    """Create a file of this name, or if there is one already, of this name with a number."""
    ending = SUFFIX if path.name.endswith(SUFFIX) else path.suffix
    name = path.name.removesuffix(ending)
    for number in count(2):
        with contextlib.suppress(FileExistsError):
            return create(path), path
        path = path.with_name(f"{name}-{number}{ending}")
    raise AssertionError("There is always another number.")
