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

from ladechat.files import NO_FILE, cannot_be_read, matching, why_unread
from ladechat.protocol import Exchange, encode
from ladechat.session.appending import append_line, create, is_there, sync_in_background
from ladechat.session.conversation_file import (
    SUFFIX,
    Answered,
    Begun,
    Continued,
    Instructed,
    Kept,
    Line,
    Renamed,
    read,
    shortened,
    title_of_copy,
)

DELETED = ".deleted"
"""What replaces the suffix of a conversation that was deleted, as long as that can be undone."""
SECONDS_TO_UNDO = 3600.0
"""After so long, what a program that broke off has left as deleted is removed."""


class ConversationInUse(Exception):
    """A conversation that is open, here or in another program, is not deleted."""


class ConversationStore:
    """Keeps each conversation in a file of its own, which begins with its first answer.

    What cannot be written is tried again with the next answer. Where its file was removed meanwhile, or emptied, the
    next answer begins another file, with all of the conversation.

    Args:
        folder: by default in the user's data folder.

    Attributes:
        folder: where the files are.
        path: the file of the conversation under way; None before it has one.
        why_copied: where that is a copy: what was in the way of writing the file of the other, as the end of a sentence
            that begins with what it is called; else "".
        failed: told once, of the first failure to write.
        deleted: what was deleted and can be brought back, in this order.
        unread: what could not be read when all conversations were to be, and what to do, in a sentence; "" if nothing.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_data_path("ladechat") / "conversations"
        self.path: Path | None = None
        self.why_copied = ""
        self.failed: Callable[[OSError], None] | None = None
        self.deleted: list[Kept] = []
        self.unread = ""
        self._descriptor = -1
        self._lines: list[Line] = [Begun()]
        self._written = 0  # how many of the lines are in the file
        self._size = 0  # bytes of the file by then
        self._added = False

    # --- the conversation under way -----------------------------------------------------------------------------------

    @property
    def kept(self) -> bool:
        """Is all that was answered in the conversation under way on the disk?"""
        if self._descriptor < 0:
            return not self._added
        return self._written == len(self._lines) and self._whole

    @property
    def removed(self) -> bool:
        """Has somebody removed or emptied the file of the conversation under way?"""
        return self._descriptor >= 0 and not self._whole

    @property
    def _whole(self) -> bool:
        """Is the file there, with all that was written into it?"""
        if self.path is None or not is_there(self._descriptor, self.path):
            return False
        return os.fstat(self._descriptor).st_size >= self._size

    @property
    def latest(self) -> bool:
        """Has the conversation under way been added to, all of it kept, and none that is kept later than it?"""
        if self.path is None or not self._added or not self.kept:
            return False
        try:
            return self.path == max(matching(self.folder, f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        except (OSError, ValueError):  # another program has taken one of them away, or all
            return False

    def add(self, exchange: Exchange) -> None:
        """Keep an exchange of the conversation under way."""
        self._append(Answered(when=_now(), exchange=exchange))

    def replace_last(self, exchange: Exchange) -> None:
        """Keep an exchange in the place of the last one of the conversation under way: its answer went on, or another
        question or answer replaces it. That is one line, so that there is no moment at which the file has neither.
        """
        self._append(Continued(when=_now(), exchange=exchange))

    def _append(self, line: Line) -> None:
        self._added = True
        self._lines.append(line)
        self._write()

    def instruct(self, system: str) -> None:
        """Keep the system prompt of the conversation under way; "" if there is none any more."""
        self._lines.append(Instructed(text=system))
        if self._descriptor >= 0:
            self._write()

    def save(self) -> bool:
        """Try once more to write what could not be written; return whether all is kept now.

        A file that was removed stays removed until there is something new to write.
        """
        if self._added and self._written < len(self._lines):
            self._write()
        return self.kept

    def begin_new(self) -> None:
        """Let go of the conversation under way, and begin another with the next exchange."""
        self.save()
        if self._descriptor >= 0:
            self._let_go()
        self._lines, self._written = [Begun()], 0
        self._added, self.why_copied = False, ""

    def open(self, kept: Kept) -> Kept:
        """Go on with a conversation. Nothing is written by that.

        Where its file cannot be written, as it is open in another program, or gone, a copy begins with the next answer,
        and its title says so; `path` is None until then.

        Returns:
            The conversation as its file has it by now.
        """
        self.begin_new()
        try:
            descriptor = _open_locked(kept.path)
        except BlockingIOError:
            self.why_copied = "is open in another ladechat"
        except FileNotFoundError:
            self.why_copied = "has been removed"
        except OSError as error:
            self.why_copied = f"cannot be written ({error.strerror or error})"
        else:
            self.path, self._descriptor, self._size = kept.path, descriptor, os.fstat(descriptor).st_size
            kept = read(kept.path) or kept
        title = title_of_copy(kept.title) if self.why_copied else kept.given_title
        self._lines += kept.answers
        self._lines += [Renamed(title=title)] if title else []
        self._lines += [Instructed(text=kept.system)] if kept.system is not None else []
        self._written = 0 if self.why_copied else len(self._lines)
        return kept

    def close(self) -> None:
        """Write what is missing, and remove for good what was deleted."""
        self.save()
        while self.deleted:
            self._discard(self.deleted.pop())

    def _write(self) -> None:
        """Append what is not in the file yet. A failure is told the first time, and the rest stays for later."""
        try:
            if self._descriptor >= 0 and not self._whole:
                self._let_go()
            if self._descriptor < 0:
                self._create()
            while self._written < len(self._lines):
                append_line(self._descriptor, encode(self._lines[self._written]))
                self._written += 1
                self._size = os.fstat(self._descriptor).st_size
            sync_in_background(self._descriptor)
        except OSError as error:
            failed, self.failed = self.failed, None
            if failed is not None:
                failed(error)

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # else a flush that is under way would hold the lock
        os.close(self._descriptor)
        self.path, self._descriptor, self._written, self._size = None, -1, 0, 0

    def _create(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        path = self.folder / f"{datetime.now():%Y-%m-%d-%H%M%S}-{secrets.token_hex(4)}{SUFFIX}"
        self._descriptor = create(path)
        self.path = path
        _lock(self._descriptor)

    # --- all of them --------------------------------------------------------------------------------------------------

    def conversations(self) -> list[Kept]:
        """All that are kept, the latest first. What is something else is left out, and what is `unread`."""
        self._purge()
        self.unread = why_unread(self.folder)
        found: list[Kept] = []
        for path in matching(self.folder, f"*{SUFFIX}"):
            try:
                kept = read(path)
            except FileNotFoundError:  # just deleted elsewhere
                continue
            except OSError as error:
                if error.errno not in NO_FILE:
                    self.unread = self.unread or cannot_be_read(path, error)
                continue
            if kept is not None:
                found.append(kept)
        return sorted(found, key=lambda kept: (kept.when, kept.path.name), reverse=True)

    def rename(self, kept: Kept, title: str) -> None:
        """Give a conversation a title; an empty one is its first question again.

        Raises:
            OSError: it cannot be written.
        """
        line = Renamed(title=shortened(title))
        descriptor = os.open(kept.path, os.O_RDWR | os.O_APPEND)
        try:
            append_line(descriptor, encode(line))
        finally:
            os.close(descriptor)
        if kept.path == self.path:
            self._lines.insert(self._written, line)
            self._written += 1

    def delete(self, kept: Kept) -> None:
        """Delete a conversation; `restore` brings it back, until `close`.

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
        self.deleted.append(kept)

    def restore(self) -> Kept:
        """Bring back the conversation that was deleted last.

        Raises:
            OSError: it cannot be brought back.
        """
        kept = self.deleted.pop()
        kept.path.with_suffix(DELETED).rename(kept.path)
        return kept

    def _discard(self, kept: Kept) -> None:
        with contextlib.suppress(OSError):
            kept.path.with_suffix(DELETED).unlink()

    def _purge(self) -> None:
        """Remove what was deleted by a program that broke off before it was closed."""
        own = {kept.path.with_suffix(DELETED) for kept in self.deleted}
        for path in set(matching(self.folder, f"*{DELETED}")) - own:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_ctime > SECONDS_TO_UNDO:
                    path.unlink()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _open_locked(path: Path) -> int:
    """Open a file to append to it.

    Raises:
        BlockingIOError: it is open in another program.
        OSError: it is gone, or cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        if not _lock(descriptor):
            raise BlockingIOError
        if not is_there(descriptor, path):
            raise FileNotFoundError  # just deleted elsewhere
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed, or its program has ended. False if another has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: two programs at once are seldom, and appending hurts neither
    return True
