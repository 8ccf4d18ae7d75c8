"""Conversations for a store to keep."""

from pathlib import Path

from ladechat.protocol import Exchange, encode
from ladechat.session.conversation_file import Answered, Begun, Line, Renamed


def exchange(question: str = "One?", answer: str = "Yes.", model: str = "demo") -> Exchange:
    return Exchange(question=question, answer=answer, token_ids=[5, 6], model=model, decoder="auto")


def answered(*exchanges: Exchange, when: str = "2030-01-01T12:00:00") -> list[Line]:
    return [Answered(when=when, exchange=one) for one in exchanges]


def write(folder: Path, name: str, *exchanges: Exchange, when: str = "2030-01-01T12:00:00", title: str = "") -> Path:
    """A file of a conversation as a store writes it."""
    folder.mkdir(exist_ok=True)
    lines: list[Line] = [Begun(), *answered(*exchanges, when=when)]
    lines += [Renamed(title=title)] if title else []
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(map(encode, lines)))
    return path
