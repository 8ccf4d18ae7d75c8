"""The current conversation, saved in the folder of all.

Several programs may use the folder at once. Each locks the file that it writes; a conversation that is open in another
program is continued as a copy, and cannot be deleted.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from ladechat.files import append_line, create_private, is_there, matching, sync_in_background
from ladechat.protocol import Exchange, encode
from ladechat.session.conversations.folder import ConversationFolder, lock
from ladechat.session.conversations.saved import (
    MOST_BYTES,
    SUFFIX,
    Answered,
    Begun,
    Branch,
    Continued,
    FileLine,
    Instructed,
    Pinned,
    Removed,
    Renamed,
    SavedConversation,
    Viewed,
    shortened,
    title_of_copy,
)
from ladechat.session.conversations.search import Listed


class ConversationStore(ConversationFolder):
    """Saves each conversation in a file of its own, which is created with its first answer.

    A failed write is tried again with the next answer. If the file was removed or emptied meanwhile, the next answer
    creates another file, with the whole conversation.

    Attributes:
        path: the file of the current conversation; None before it has one.
        why_copied: if the current conversation is a copy, why the original's file cannot be written, as the end of a
            sentence that starts with its title; else "".
        failed: called once, with the first failure to write.
        title: the title that the user gave the current conversation; "" if there is none.
    """

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder)
        self.path: Path | None = None
        self.why_copied = ""
        self.failed: Callable[[OSError], None] | None = None
        self.title = ""
        self._descriptor = -1
        self._lines: list[FileLine] = [Begun()]
        self._written = 0  # number of lines in the file
        self._size = 0  # the file's size in bytes after the last write
        self._added = False

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

    def add(self, exchange: Exchange, after: int | None = None, replaced: int = 0) -> None:
        """Save an exchange. It follows the one of number `after`, or else the last one shown, and replaces the last
        `replaced` ones shown.
        """
        self._append_answer(
            *[Removed()] * replaced, Answered(when=_now(), exchange=self._fitting(exchange), after=after)
        )

    def replace_last(self, exchange: Exchange, number: int | None = None) -> None:
        """Save a new version of the last exchange that is shown, with its number: its answer was continued. It is one
        line, so that at no moment the file has neither version.
        """
        self._append_answer(Continued(when=_now(), exchange=self._fitting(exchange), number=number))

    def _fitting(self, exchange: Exchange) -> Exchange:
        """Return an exchange without its steps if the file has very many: it has to stay readable."""
        return exchange if self._size < MOST_BYTES // 8 else replace(exchange, steps=b"")

    def apply(self, branch: Branch, replaced: int) -> None:
        """Save that another variant is shown, or a deletion; the last `replaced` exchanges are not shown any more."""
        self._append(*[Removed()] * replaced, branch)

    def _append_answer(self, *lines: FileLine) -> None:
        self._added = True
        self._lines += lines
        self._write()

    def note_view(self, view: Viewed) -> None:
        """Save how the current conversation is left, if it has a file."""
        before = next((line for line in reversed(self._lines) if isinstance(line, Viewed)), Viewed())
        if self._descriptor >= 0 and view != before:
            self._append(view)

    def instruct(self, system: str) -> None:
        """Save the system prompt of the current conversation; "" if it was removed."""
        self._append(Instructed(text=system))

    def entitle(self, title: str) -> None:
        """Give the current conversation a title; an empty title restores the default."""
        self.title = shortened(title)
        self._append(Renamed(title=self.title))

    def _append(self, *lines: FileLine) -> None:
        """Save lines of the current conversation, with its first answer if it has none yet."""
        self._lines += lines
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
            self._close_file()
        self._lines, self._written = [Begun()], 0
        self._added, self.why_copied, self.title = False, "", ""

    def open(self, conversation: SavedConversation) -> SavedConversation:
        """Continue a saved conversation, without writing anything yet.

        If its file is gone or replaced, cannot be written, or is open in another program, the next answer creates a
        copy, marked as such in its title; `path` is None until then.

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
            if (now := self.read(conversation.path)) is None:
                self.why_copied = "has been emptied or replaced"
                os.close(descriptor)
            else:
                self.path, self._descriptor, self._size = conversation.path, descriptor, os.fstat(descriptor).st_size
                conversation = now
        self.title = title_of_copy(conversation.title) if self.why_copied else conversation.given_title
        self._lines += conversation.lines
        self._written = 0 if self.why_copied else len(self._lines)
        self._lines += [Renamed(title=self.title), Pinned(pinned=False)] if self.why_copied else []
        return conversation

    def close(self) -> None:
        """Write what is missing, and remove the files of deleted conversations."""
        self.save()
        super().close()

    def change(self, conversation: Listed, line: FileLine) -> None:
        """Append a line to the file of a conversation, which may be the current one, or open in another program.

        Raises:
            OSError: the file cannot be written.
        """
        super().change(conversation, line)
        if conversation.path == self.path:
            self._lines.insert(self._written, line)
            self._written += 1
            if isinstance(line, Renamed):
                self.title = line.title

    def _write(self) -> None:
        """Append the lines that are not in the file yet. The first failure is reported, and lines stay for later."""
        try:
            if self._descriptor >= 0 and not self._whole:
                self._close_file()
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

    def _close_file(self) -> None:
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
        lock(self._descriptor)


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
        if not lock(descriptor):
            raise BlockingIOError
        if not is_there(descriptor, path):
            raise FileNotFoundError  # just deleted by another program
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
