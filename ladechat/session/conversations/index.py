"""An index of the saved conversations: SQLite's full-text search, in a database beside their files.

The files stay the truth: what has changed in them is read before each use, and a database that is missing or damaged is
made anew.
"""

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from threading import Lock

from ladechat.files import create_private
from ladechat.session.conversations.saved import BETWEEN, SUFFIX, SavedConversation
from ladechat.session.conversations.search import (
    IndexedConversation,
    Listed,
    ScannedConversations,
    folded,
    sort_key,
)

NAME = "search.sqlite"
VERSION = 2
"""A database of another version is made anew."""
AT_ONCE = 100
"""The number of conversations that are read before they are written to the disk, and progress is reported."""
MOST_FIRST = 200
"""The most matches of a phrase that stand before those of its words: finding all of a common phrase takes too long."""
ERASES_AT_ONCE = (3, 42)
"""The version of SQLite from which on the words of removed texts leave the index with them."""
WORDS = re.compile(r"[^\W_]+")
"""What the index takes for words."""
END_OF_MESSAGE = " \ue000 "
"""A word that nobody types, between two messages: no phrase is found across both."""
WITHOUT_SPACES = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
"""Characters of scripts that put no spaces between words: each is indexed as a word."""

SCHEMA = f"""
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER, changed INTEGER,
    title TEXT, moment REAL, model TEXT, questions INTEGER, pinned INTEGER
);
CREATE VIRTUAL TABLE said USING fts5 (text, tokenize = 'unicode61 remove_diacritics 0', prefix = '1 2');
PRAGMA user_version = {VERSION};
"""

Read = Callable[[Path], SavedConversation | None]
"""Reads a file; returns None if it is no conversation or cannot be read."""
GoOn = Callable[[int, int], bool]
"""Called with the numbers of files read and to read; returns whether to go on."""


class ConversationIndex:
    """Finds the conversations of a folder by phrases, and by words that begin with the typed ones."""

    def __init__(self, folder: Path, read: Read) -> None:
        self._folder, self._read = folder, read
        self._path = folder / NAME
        self._database: sqlite3.Connection | None = None
        self._opened_file: os.stat_result | None = None
        self._updating = Lock()
        self._listed: dict[int, IndexedConversation] = {}  # by the key in the database, in the order of the list
        self.all: list[IndexedConversation] = []

    def update(self, go_on: GoOn) -> None:
        """Read what has changed. If `go_on` ends it, the rest is left for another time.

        Raises:
            sqlite3.Error: SQLite has no full-text search, or another program is writing the database.
            OSError: the folder cannot be written.
        """
        with self._updating:
            try:
                self._update(go_on)
            except sqlite3.Error as error:
                if _is_busy(error):
                    raise
                damaged = self._is_open
                self.close()
                for path in (self._path, self._path.with_name(f"{NAME}-journal")) if damaged else ():
                    with contextlib.suppress(OSError):
                        path.unlink()
                self._update(go_on)

    def find(self, typed: str) -> Sequence[Listed]:
        """Return the matching conversations; all if nothing is typed."""
        words = WORDS.findall(_apart(folded(typed)))
        if not words:
            return self.all
        try:
            return self._found(words)
        except sqlite3.Error:  # damaged since it was opened: the next update makes another
            files = (self._read(one.path) for one in self.all)
            return ScannedConversations(one for one in files if one is not None).find(typed)

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            self._database.close()
            self._database = None

    # --- reading ------------------------------------------------------------------------------------------------------

    def _update(self, go_on: GoOn) -> None:
        database = self._opened()
        known = {name: (key, *state) for key, name, *state in database.execute(_KNOWN)}
        there = dict(_files(self._folder))
        changed = sorted(name for name, state in there.items() if known.get(name, ())[1:] != state)
        gone = [known[name][0] for name in known.keys() - there.keys()]
        removed = gone + [known[name][0] for name in changed if name in known]
        for table, key in (("conversation", "id"), ("said", "rowid")):
            database.executemany(f"DELETE FROM {table} WHERE {key} = ?", [(one,) for one in removed])
        if gone and sqlite3.sqlite_version_info < ERASES_AT_ONCE:
            database.execute("INSERT INTO said (said) VALUES ('optimize')")
        for done, name in enumerate(changed):
            if done % AT_ONCE == 0:
                database.commit()
                if not go_on(done, len(changed)):
                    break
            conversation = self._read(self._folder / name)
            if conversation is not None:
                _add(database, conversation, *there[name])
        database.commit()
        listed = [(key, self._indexed(*row)) for key, *row in database.execute(_LISTED)]
        self._listed = dict(sorted(listed, key=lambda pair: sort_key(pair[1]), reverse=True))
        self.all = list(self._listed.values())

    @property
    def _is_open(self) -> bool:
        """Whether the opened file is still there: another program may have made the database anew."""
        try:
            return self._opened_file is not None and os.path.samestat(self._opened_file, self._path.stat())
        except OSError:
            return False

    def _opened(self) -> sqlite3.Connection:
        """Return the database, which is created if it is missing, or of another version."""
        if self._database is not None and self._is_open:
            return self._database
        self.close()
        with contextlib.suppress(FileExistsError):
            os.close(create_private(self._path))
        self._database = database = sqlite3.connect(self._path, check_same_thread=False)
        self._opened_file = self._path.stat()
        database.execute("PRAGMA secure_delete = ON")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            if version:
                raise sqlite3.DatabaseError("of another version")
            database.executescript(SCHEMA)
            if sqlite3.sqlite_version_info >= ERASES_AT_ONCE:
                database.execute("INSERT INTO said (said, rank) VALUES ('secure-delete', 1)")
        return database

    def _indexed(
        self, name: str, title: str, moment: float, model: str, questions: int, pinned: int
    ) -> IndexedConversation:
        when = datetime.fromtimestamp(moment).astimezone()
        return IndexedConversation(self._folder / name, title, when, model, questions, bool(pinned))

    # --- finding ------------------------------------------------------------------------------------------------------

    def _found(self, words: list[str]) -> list[IndexedConversation]:
        """Return those with the phrase, whose last word may go on, then those with all words, each of which may."""
        first = self._matching(f'"{" ".join(words)}" *', MOST_FIRST) if len(words) > 1 else set()
        matches = self._matching(" AND ".join(f'"{word}" *' for word in words))
        listed, rest = self._listed.items(), matches - first
        return [one for key, one in listed if key in first] + [one for key, one in listed if key in rest]

    def _matching(self, query: str, most: int = -1) -> set[int]:
        """Return the keys of matches; if they are limited, those that were indexed last."""
        assert self._database is not None
        return {key for (key,) in self._database.execute(_MATCHING, (query, most))}


_MATCHING = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rowid DESC LIMIT ?"
_KNOWN = "SELECT id, name, size, changed FROM conversation"
_LISTED = "SELECT id, name, title, moment, model, questions, pinned FROM conversation"
_ADDED = (
    "INSERT OR IGNORE INTO conversation (name, size, changed, title, moment, model, questions, pinned) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def _add(database: sqlite3.Connection, one: SavedConversation, size: int, changed: int) -> None:
    row = (one.path.name, size, changed, one.title, one.when.timestamp(), one.model, one.questions, one.pinned)
    added = database.execute(_ADDED, row)
    if not added.rowcount:
        return  # another program has just added it
    text = _apart(one.folded).replace(BETWEEN, END_OF_MESSAGE)
    database.execute("INSERT INTO said (rowid, text) VALUES (?, ?)", (added.lastrowid, text))


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the names of the files in the folder, each with its size, and its last change in nanoseconds."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            is_text = entry.name == entry.name.encode(errors="ignore").decode()  # SQLite takes nothing else
            if is_text and entry.name.endswith(SUFFIX):
                with contextlib.suppress(OSError):
                    about = entry.stat()
                    yield entry.name, (about.st_size, about.st_mtime_ns)


def _apart(text: str) -> str:
    """Return a text with spaces around the characters that are words by themselves."""
    return text if text.isascii() else WITHOUT_SPACES.sub(r" \1 ", text)


def _is_busy(error: sqlite3.Error) -> bool:
    """Return whether another program is writing the database."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
