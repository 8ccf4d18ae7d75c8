"""The saved conversations, in a folder that only the user can read, and the current one.

Several programs may use the folder at once. Each locks the file that it writes; a conversation that is open in another
program is continued as a copy, and cannot be deleted.
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

from ladechat.files import (
    NO_FILE,
    append_line,
    cannot_be_read,
    create_private,
    is_there,
    matching,
    sync_in_background,
    why_unread,
)
from ladechat.protocol import Exchange, encode
from ladechat.session.conversations.saved import (
    SUFFIX,
    Answered,
    Begun,
    Continued,
    FileLine,
    Instructed,
    Renamed,
    SavedConversation,
    read,
    shortened,
    title_of_copy,
)

DELETED = ".deleted"
"""The suffix of the file of a deleted conversation, as long as the deletion can be undone."""
SECONDS_TO_UNDO = 3600.0
"""The age after which deleted files that a crashed program has left are removed, in seconds."""


class ConversationInUse(Exception):
    """Raised when a conversation to be deleted is open, in this or another program."""


class ConversationStore:
    """Saves each conversation in a file of its own, which is created with its first answer.

    A failed write is tried again with the next answer. If the file was removed or emptied meanwhile, the next answer
    creates another file, with the whole conversation.

    Args:
        folder: the folder of the files; by default in the user's data folder.

    Attributes:
        folder: the folder of the files.
        path: the file of the current conversation; None before it has one.
        why_copied: if the current conversation is a copy, why the original's file cannot be written, as the end of a
            sentence that starts with its title; else "".
        failed: called once, with the first failure to write.
        deleted: the deleted conversations that can be restored, in the order of their deletion.
        unread: why some conversations could not be read, and what to do, in a sentence; "" if all could.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_data_path("ladechat") / "conversations"
        self.path: Path | None = None
        self.why_copied = ""
        self.failed: Callable[[OSError], None] | None = None
        self.deleted: list[SavedConversation] = []
        self.unread = ""
        self._descriptor = -1
        self._lines: list[FileLine] = [Begun()]
        self._written = 0  # number of lines in the file
        self._size = 0  # the file's size in bytes after the last write
        self._added = False

    # --- the current conversation -------------------------------------------------------------------------------------

    @property
    def is_saved(self) -> bool:
        """Whether all answers of the current conversation are on the disk."""
        if self._descriptor < 0:
            return not self._added
        return self._written == len(self._lines) and self._whole

    @property
    def removed(self) -> bool:
        """Whether the file of the current conversation was removed or emptied by somebody."""
        return self._descriptor >= 0 and not self._whole

    @property
    def _whole(self) -> bool:
        """Whether the file exists, with all that was written into it."""
        if self.path is None or not is_there(self._descriptor, self.path):
            return False
        return os.fstat(self._descriptor).st_size >= self._size

    @property
    def latest(self) -> bool:
        """Whether the current conversation has new answers, all of them saved, and is the latest saved conversation."""
        if self.path is None or not self._added or not self.is_saved:
            return False
        try:
            return self.path == max(matching(self.folder, f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        except (OSError, ValueError):  # another program has removed one of them, or all
            return False

    def add(self, exchange: Exchange) -> None:
        """Save an exchange of the current conversation."""
        self._append(Answered(when=_now(), exchange=exchange))

    def replace_last(self, exchange: Exchange) -> None:
        """Save a new version of the current conversation's last exchange: its answer was continued, or the exchange was
        replaced. It is one line, so that at no moment the file has neither version.
        """
        self._append(Continued(when=_now(), exchange=exchange))

    def _append(self, line: FileLine) -> None:
        self._added = True
        self._lines.append(line)
        self._write()

    def instruct(self, system: str) -> None:
        """Save the system prompt of the current conversation; "" if it was removed."""
        self._lines.append(Instructed(text=system))
        if self._descriptor >= 0:
            self._write()

    def save(self) -> bool:
        """Write what could not be written before; return whether all is saved now.

        A file that was removed stays removed until there is something new to write.
        """
        if self._added and self._written < len(self._lines):
            self._write()
        return self.is_saved

    def begin_new(self) -> None:
        """Close the current conversation; the next exchange starts another."""
        self.save()
        if self._descriptor >= 0:
            self._let_go()
        self._lines, self._written = [Begun()], 0
        self._added, self.why_copied = False, ""

    def open(self, conversation: SavedConversation) -> SavedConversation:
        """Continue a saved conversation, without writing anything yet.

        If its file is gone, cannot be written, or is open in another program, the next answer creates a copy, marked as
        such in its title; `path` is None until then.

        Returns:
            The conversation as its file has it now.
        """
        self.begin_new()
        try:
            descriptor = _open_locked(conversation.path)
        except BlockingIOError:
            self.why_copied = "is open in another ladechat"
        except FileNotFoundError:
            self.why_copied = "has been removed"
        except OSError as error:
            self.why_copied = f"cannot be written ({error.strerror or error})"
        else:
            self.path, self._descriptor, self._size = conversation.path, descriptor, os.fstat(descriptor).st_size
            conversation = read(conversation.path) or conversation
        title = title_of_copy(conversation.title) if self.why_copied else conversation.given_title
        self._lines += conversation.answers
        self._lines += [Renamed(title=title)] if title else []
        self._lines += [Instructed(text=conversation.system)] if conversation.system is not None else []
        self._written = 0 if self.why_copied else len(self._lines)
        return conversation

    def close(self) -> None:
        """Write what is missing, and remove the files of deleted conversations."""
        self.save()
        while self.deleted:
            with contextlib.suppress(OSError):
                self.deleted.pop().path.with_suffix(DELETED).unlink()

    def _write(self) -> None:
        """Append the lines that are not in the file yet. The first failure is reported, and lines stay for later."""
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
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # else a flush in progress would hold the lock
        os.close(self._descriptor)
        self.path, self._descriptor, self._written, self._size = None, -1, 0, 0

    def _create(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        path = self.folder / f"{datetime.now():%Y-%m-%d-%H%M%S}-{secrets.token_hex(4)}{SUFFIX}"
        self._descriptor = create_private(path)
        self.path = path
        _lock(self._descriptor)

    # --- all conversations --------------------------------------------------------------------------------------------

    def conversations(self) -> list[SavedConversation]:
        """Return all saved conversations, the latest first; those that cannot be read are left to `unread`."""
        self._purge()
        self.unread = why_unread(self.folder)
        found: list[SavedConversation] = []
        for path in matching(self.folder, f"*{SUFFIX}"):
            try:
                conversation = read(path)
            except FileNotFoundError:  # just deleted by another program
                continue
            except OSError as error:
                if error.errno not in NO_FILE:
                    self.unread = self.unread or cannot_be_read(path, error)
                continue
            if conversation is not None:
                found.append(conversation)
        return sorted(found, key=lambda one: (one.when, one.path.name), reverse=True)

    def rename(self, conversation: SavedConversation, title: str) -> None:
        """Give a conversation a title; an empty title restores the default, the start of its first question.

        Raises:
            OSError: the file cannot be written.
        """
        line = Renamed(title=shortened(title))
        descriptor = os.open(conversation.path, os.O_RDWR | os.O_APPEND)
        try:
            append_line(descriptor, encode(line))
        finally:
            os.close(descriptor)
        if conversation.path == self.path:
            self._lines.insert(self._written, line)
            self._written += 1

    def delete(self, conversation: SavedConversation) -> None:
        """Delete a conversation; `restore` brings it back, until `close`.

        Raises:
            ConversationInUse: it is open.
            OSError: its file cannot be renamed.
        """
        descriptor = os.open(conversation.path, os.O_RDWR)
        try:
            if not _lock(descriptor):
                raise ConversationInUse(conversation.title)
            conversation.path.rename(conversation.path.with_suffix(DELETED))
        finally:
            os.close(descriptor)
        self.deleted.append(conversation)

    def restore(self) -> SavedConversation:
        """Restore the conversation that was deleted last.

        Raises:
            OSError: it cannot be restored.
        """
        conversation = self.deleted.pop()
        conversation.path.with_suffix(DELETED).rename(conversation.path)
        return conversation

    def _purge(self) -> None:
        """Remove the files of conversations that were deleted by programs that have crashed."""
        own = {conversation.path.with_suffix(DELETED) for conversation in self.deleted}
        for path in set(matching(self.folder, f"*{DELETED}")) - own:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_ctime > SECONDS_TO_UNDO:
                    path.unlink()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _open_locked(path: Path) -> int:
    """Open a file for appending, and lock it.

    Raises:
        BlockingIOError: it is open in another program.
        OSError: it is gone, or cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        if not _lock(descriptor):
            raise BlockingIOError
        if not is_there(descriptor, path):
            raise FileNotFoundError  # just deleted by another program
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed or its program ends; return False if another program has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: two programs at once are rare, and appending lines damages neither's
    return True
