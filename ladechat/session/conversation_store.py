"""The conversations that are kept, in a folder of the user's alone, and the one that is being written.

Several programs may use the folder at once. Each locks the file that it writes; what is open elsewhere is gone on with
as a copy, and is not deleted.
"""

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from platformdirs import user_data_path

from ladechat.protocol import Exchange, encode
from ladechat.session.conversation_file import (
    SUFFIX,
    Answered,
    Begun,
    Continued,
    Instructed,
    Kept,
    Line,
    Removed,
    Renamed,
    read,
    shortened,
)
from ladechat.session.recording import PRIVATE, sync_in_background, write_whole

DELETED = ".deleted"
"""What replaces the suffix of a conversation that was deleted, as long as that can be undone."""
SECONDS_TO_UNDO = 3600.0
"""After so long, what a program that broke off has left as deleted is removed."""


class ConversationInUse(Exception):
    """A conversation that is open, here or in another program, is not deleted."""


class ConversationStore:
    """Keeps each conversation in a file of its own, which begins with its first answer.

    What cannot be written is tried again with the next answer.

    Args:
        folder: by default in the user's data folder.

    Attributes:
        folder: where the files are.
        path: the file of the conversation under way; None before it has one.
        failed: told once, of the first failure to write.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_data_path("ladechat") / "conversations"
        self.path: Path | None = None
        self.failed: Callable[[OSError], None] | None = None
        self._descriptor = -1
        self._unwritten: list[Line] = [Begun()]
        self._exchanges = 0
        self._added = False

    # --- the conversation under way -----------------------------------------------------------------------------------

    @property
    def kept(self) -> bool:
        """Is all that was answered in the conversation under way on the disk?"""
        return not (self._added and self._unwritten)

    @property
    def latest(self) -> bool:
        """Has the conversation under way been added to, all of it kept, and none that is kept later than it?"""
        if self.path is None or not self._added or not self.kept:
            return False
        try:
            return self.path == max(self.folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        except (OSError, ValueError):  # another program has taken one of them away, or all
            return False

    def add(self, exchange: Exchange) -> None:
        """Keep an exchange of the conversation under way."""
        self._added = True
        self._exchanges += 1
        self._unwritten.append(Answered(when=_now(), exchange=exchange))
        self._write()

    def replace_last(self, exchange: Exchange) -> None:
        """Keep the last exchange of the conversation under way as it is, now that its answer went on."""
        self._added = True
        self._unwritten.append(Continued(when=_now(), exchange=exchange))
        self._write()

    def remove_last(self) -> None:
        """Take the last exchange out of the conversation under way."""
        self._exchanges -= 1
        self._unwritten.append(Removed())
        if self._descriptor >= 0:
            self._write()

    def instruct(self, system: str) -> None:
        """Keep the system prompt of the conversation under way; "" if there is none any more."""
        self._unwritten.append(Instructed(text=system))
        if self._descriptor >= 0:
            self._write()

    def begin_new(self) -> None:
        """Let go of the conversation under way, and begin another with the next exchange."""
        if not self.kept:
            self._write()
        if self._descriptor >= 0:
            if not self._exchanges and self.path is not None:
                with contextlib.suppress(OSError):
                    self.path.unlink()
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # else a flush that is under way would hold the lock
            os.close(self._descriptor)
        self.path, self._descriptor = None, -1
        self._unwritten = [Begun()]
        self._exchanges = 0
        self._added = False

    def open(self, kept: Kept) -> Kept:
        """Go on with a conversation.

        Where its file cannot be written, as it is open in another program, or gone, a copy begins with the next answer;
        `path` is None until then.

        Returns:
            The conversation as its file has it by now.
        """
        self.begin_new()
        descriptor = _open_locked(kept.path)
        if descriptor is not None:
            self.path, self._descriptor, self._unwritten = kept.path, descriptor, []
            kept = read(kept.path) or kept
        else:
            title = [Renamed(title=kept.given_title)] if kept.given_title else []
            system = [Instructed(text=kept.system)] if kept.system is not None else []
            self._unwritten += [*kept.answers, *title, *system]
        self._exchanges = len(kept.answers)
        return kept

    def _write(self) -> None:
        """Append what is not in the file yet. A failure is told the first time, and the rest stays for later."""
        try:
            if self._descriptor < 0:
                self._create()
            while self._unwritten:
                _append(self._descriptor, self._unwritten[0])
                del self._unwritten[0]
            sync_in_background(self._descriptor)
        except OSError as error:
            failed, self.failed = self.failed, None
            if failed is not None:
                failed(error)

    def _create(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        path = self.folder / f"{datetime.now():%Y-%m-%d-%H%M%S}-{secrets.token_hex(4)}{SUFFIX}"
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE)
        self.path = path
        _lock(self._descriptor)

    # --- all of them --------------------------------------------------------------------------------------------------

    def conversations(self) -> list[Kept]:
        """All that are kept, the latest first. What is something else, or cannot be read, is left out."""
        self._purge()
        found: list[Kept] = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):
                kept = read(path)
                if kept is not None:
                    found.append(kept)
        return sorted(found, key=lambda kept: (kept.when, kept.path.name), reverse=True)

    def rename(self, kept: Kept, title: str) -> None:
        """Give a conversation a title; an empty one is its first question again.

        Raises:
            OSError: it cannot be written.
        """
        descriptor = os.open(kept.path, os.O_RDWR | os.O_APPEND)
        try:
            _append(descriptor, Renamed(title=shortened(title)))
        finally:
            os.close(descriptor)

    def delete(self, kept: Kept) -> None:
        """Put a conversation aside; `restore` brings it back, `discard` ends it.

        Raises:
            ConversationInUse: it is open.
            OSError: it cannot be put aside.
        """
        descriptor = os.open(kept.path, os.O_RDWR)
        try:
            if not _lock(descriptor):
                raise ConversationInUse(kept.title)
            kept.path.rename(kept.path.with_suffix(DELETED))
        finally:
            os.close(descriptor)

    def restore(self, kept: Kept) -> None:
        """Undo `delete`.

        Raises:
            OSError: it cannot be brought back.
        """
        kept.path.with_suffix(DELETED).rename(kept.path)

    def discard(self, kept: Kept) -> None:
        """Remove the file of a conversation that was deleted."""
        with contextlib.suppress(OSError):
            kept.path.with_suffix(DELETED).unlink()

    def _purge(self) -> None:
        """Remove what was deleted by a program that broke off before it discarded it."""
        for path in self.folder.glob(f"*{DELETED}"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_ctime > SECONDS_TO_UNDO:
                    path.unlink()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _append(descriptor: int, line: Line) -> None:
    """Write a line at the end of a file; one that was cut off there before is ended first."""
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    write_whole(descriptor, (b"\n" if torn else b"") + encode(line))


def _open_locked(path: Path) -> int | None:
    """Open a file to append to it; None if it is open in another program, or cannot be written."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if _lock(descriptor) and os.path.samestat(os.fstat(descriptor), path.stat()):  # else just deleted elsewhere
            return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed, or its program has ended. False if another has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: two programs at once are seldom, and appending hurts neither
    return True
