"""Conversations for a store to keep."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ladechat.protocol import Exchange, encode
from ladechat.session.conversations.saved import Answered, Begun, FileLine, Instructed, Renamed, SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.conversations.tree import ExchangeTree


def exchange(question: str = "One?", answer: str = "Yes.", model: str = "demo") -> Exchange:
    return Exchange(question=question, answer=answer, token_ids=[5, 6], model=model, decoder="auto")


def answered(*exchanges: Exchange, when: str = "2030-01-01T12:00:00") -> list[FileLine]:
    return [Answered(when=when, exchange=one) for one in exchanges]


def write(
    folder: Path,
    name: str,
    *exchanges: Exchange,
    when: str = "2030-01-01T12:00:00",
    title: str = "",
    system: str | None = None,
) -> Path:
    """A file of a conversation as a store writes it."""
    folder.mkdir(exist_ok=True)
    lines: list[FileLine] = [Begun(), *answered(*exchanges, when=when)]
    lines += [Renamed(title=title)] if title else []
    lines += [Instructed(text=system)] if system is not None else []
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(map(encode, lines)))
    return path


def saved(path: Path, *exchanges: Exchange, title: str = "", system: str | None = None) -> SavedConversation:
    """A conversation as it was read of a file that may be gone since."""
    tree, when = ExchangeTree(), "2030-01-01T12:00:00"
    for place, one in enumerate(exchanges):
        tree.add(one, place - 1, when)
    lines = tuple(Answered(when=when, exchange=one) for one in exchanges)
    return SavedConversation(path, lines, tree, title, system)


def questions(store: ConversationStore) -> list[list[str]]:
    """What was asked in each conversation, the latest first."""
    return [[one.question for one in kept.exchanges] for kept in store.conversations()]


def forbid(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to open this file or folder, as to a user without the right; a test may run as one who has every right."""

    def unless_forbidden(act: Callable[..., Any], asked: Any, *given: Any, **named: Any) -> Any:
        if isinstance(asked, str | os.PathLike) and Path(os.fspath(asked)) == path:
            raise PermissionError(13, "Permission denied", str(path))
        return act(asked, *given, **named)

    for name in ("open", "scandir", "listdir"):
        monkeypatch.setattr(os, name, partial(unless_forbidden, getattr(os, name)))


def take_away(path: Path, how: str) -> None:
    """Remove a file, or its whole folder, or all that is in it; or put another in its place."""
    match how:
        case "file":
            path.unlink()
        case "folder":
            shutil.rmtree(path.parent)
        case "emptied":
            path.write_bytes(b"")
        case "another":
            path.rename(path.with_suffix(".bak"))
            path.write_text("not the conversation")
