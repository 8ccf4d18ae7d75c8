"""The folder of the saved conversations, which only the user can read: list, find, rename, pin and delete them."""

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path

from ladechat.files import NO_FILE, append_line, cannot_be_read, matching, why_unread
from ladechat.protocol import encode
from ladechat.session.conversations.saved import SUFFIX, FileLine, Pinned, Renamed, SavedConversation, read, shortened
from ladechat.session.conversations.search import Listed, Listing, ScannedConversations

if TYPE_CHECKING:  # SQLite is imported with the first list: a chat needs none
    from ladechat.session.conversations.index import ConversationIndex, GoOn

DELETED = ".deleted"
"""The suffix of the file of a deleted conversation, as long as the deletion can be undone."""
SECONDS_TO_UNDO = 3600.0
"""The age after which deleted files that a crashed program has left are removed, in seconds."""


class ConversationInUse(Exception):
    """Raised when a conversation to be deleted is open, in this or another program."""


class ConversationFolder:
    """All saved conversations. Several programs may use the folder at once.

    Attributes:
        folder: the folder of the files; by default in the user's data folder.
        deleted: the deleted conversations that can be restored, in the order of their deletion.
        problem: why some conversations could not be read, and what to do, in a sentence; "" if all could.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_data_path("ladechat") / "conversations"
        self.deleted: list[Listed] = []
        self._locked: list[int] = []  # descriptors of their files, so that no other program removes them
        self.problem = ""
        self._index: ConversationIndex | None = None

    def close(self) -> None:
        """Remove the files of deleted conversations."""
        if self._index is not None:
            self._index.close()
        while self.deleted:
            with contextlib.suppress(OSError):
                self.deleted.pop().path.with_suffix(DELETED).unlink()
        while self._locked:
            os.close(self._locked.pop())

    def conversations(self) -> list[SavedConversation]:
        """Read all saved conversations, the latest first. `problem` says why some could not be read."""
        self._purge()
        self.problem = why_unread(self.folder)
        found = [one for path in matching(self.folder, f"*{SUFFIX}") if (one := self.read(path)) is not None]
        return sorted(found, key=lambda one: (one.when, one.path.name), reverse=True)

    def listing(self, go_on: "GoOn" = lambda *_: True) -> Listing:
        """Return a list of all saved conversations that can be searched. Only files that have changed since the last
        list are read. `problem` says why some could not be.
        """
        try:
            import sqlite3

            from ladechat.session.conversations.index import ConversationIndex
        except ImportError:  # a Python without SQLite
            return ScannedConversations(self.conversations())
        self._purge()
        self.problem = why_unread(self.folder)
        if self.problem:
            return ScannedConversations(())
        self._index = self._index or ConversationIndex(self.folder, self.read)
        try:
            self._index.update(go_on)
        except (sqlite3.Error, OSError):
            self._index.close()
            return ScannedConversations(self.conversations())
        return self._index

    def read(self, path: Path) -> SavedConversation | None:
        """Read a conversation; None if the file is gone, is none, or cannot be read, which `problem` reports."""
        try:
            return read(path)
        except FileNotFoundError:  # just deleted by another program
            return None
        except OSError as error:
            if error.errno not in NO_FILE:
                self.problem = self.problem or cannot_be_read(path, error)
            return None

    def rename(self, conversation: Listed, title: str) -> None:
        """Give a conversation a title; an empty title restores the default, the start of its first question.

        Raises:
            OSError: the file cannot be written.
        """
        self.change(conversation, Renamed(title=shortened(title)))

    def pin(self, conversation: Listed, pinned: bool) -> None:
        """Pin a conversation to the top of the list, or unpin it.

        Raises:
            OSError: the file cannot be written.
        """
        self.change(conversation, Pinned(pinned=pinned))

    def change(self, conversation: Listed, line: FileLine) -> None:
        """Append a line to the file of a conversation, which may be open in another program.

        Raises:
            OSError: the file cannot be written.
        """
        descriptor = os.open(conversation.path, os.O_RDWR | os.O_APPEND)
        try:
            append_line(descriptor, encode(line))
        finally:
            os.close(descriptor)

    def delete(self, conversation: Listed) -> None:
        """Delete a conversation; `restore` brings it back, until `close`.

        Raises:
            ConversationInUse: it is open.
            OSError: its file cannot be renamed.
        """
        descriptor = os.open(conversation.path, os.O_RDWR)
        try:
            if not lock(descriptor):
                raise ConversationInUse(conversation.title)
            conversation.path.rename(conversation.path.with_suffix(DELETED))
        except (ConversationInUse, OSError):
            os.close(descriptor)
            raise
        self.deleted.append(conversation)
        self._locked.append(descriptor)

    def restore(self) -> Listed:
        """Restore the conversation that was deleted last.

        Raises:
            OSError: it cannot be restored.
        """
        conversation = self.deleted[-1]
        conversation.path.with_suffix(DELETED).rename(conversation.path)
        os.close(self._locked.pop())
        return self.deleted.pop()

    def _purge(self) -> None:
        """Remove the files of conversations that were deleted by programs that have crashed."""
        own = {conversation.path.with_suffix(DELETED) for conversation in self.deleted}
        for path in set(matching(self.folder, f"*{DELETED}")) - own:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_ctime > SECONDS_TO_UNDO:
                    with path.open("rb") as file:
                        if lock(file.fileno()):  # else its program still runs, and may restore it
                            path.unlink()


def lock(descriptor: int) -> bool:
    """Lock a file until it is closed or its program ends; return False if another program has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: two programs at once are rare, and appending lines damages neither's
    return True
