"""One answer of a server: asked for, shortened until it fits into the context, read within bounds."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ladechat.protocol import MOST_TEXT, Message
from ladechat.protocol.values import MOST_PIECE
from ladechat.remote.connection import Connection
from ladechat.remote.dialects.dialect import Dialect
from ladechat.remote.faults import ContextFull, ServerFault
from ladechat.remote.json_values import text_at
from ladechat.remote.reports import Asked, Ended, Report, Tokens
from ladechat.remote.thoughts import ThoughtsInText

LEAST_ROOM = 64
"""An answer is not made shorter than this, in tokens, while earlier turns could be left out instead."""
TOKENS_TOO_MANY = 16
"""How far a pass may go past the limit of an answer."""
EVENTS_FOR_A_TOKEN, MORE_EVENTS = 4, 1000
"""The events of an answer are at most so many for each of its tokens, and so many more."""


@dataclass(frozen=True)
class Trimmed:
    """The oldest turns were left out of the conversation. The server does not tell how many tokens they had."""

    dropped_messages: int
    messages: Sequence[Message]


@dataclass(frozen=True)
class OtherModel:
    """The server names another model than the one that was asked."""

    name: str


async def reports(
    connection: Connection, dialect: Dialect, asked: Asked
) -> AsyncGenerator[Report | Trimmed | OtherModel]:
    """Yield what a server tells of an answer, its end last.

    Raises:
        ServerFault: it refuses, breaks off, or sends what nobody has asked for.
    """
    while True:
        try:
            async for one in _once(connection, dialect, asked):
                yield one
        except ContextFull as full:
            shorter = _shorter(asked, full)
            if shorter is None:
                raise
            if dropped := len(asked.messages) - len(shorter.messages):
                yield Trimmed(dropped, shorter.messages)
            asked = shorter
        else:
            return


async def _once(connection: Connection, dialect: Dialect, asked: Asked) -> AsyncGenerator[Report | OtherModel]:
    """Yield the same, or raise `ContextFull` before anything was yielded."""
    request = await dialect.request(connection, asked)
    reader, bounds, host = dialect.reader(asked), _Bounds(asked.most_tokens), connection.address.host
    thoughts = ThoughtsInText(begun=request.thinks, taken_apart=asked.goes_on)
    async with contextlib.aclosing(connection.stream(request.url, request.body)) as events:
        async for event in events:
            if bounds.first and (other := _other_model(event, asked.model)):
                yield OtherModel(other)
            for reported in reader.read(event):
                bounds.take(reported, host)
                for one in thoughts.read(reported):
                    yield one
            bounds.take_event(host)
    ended = False
    for reported in reader.end():
        ended = isinstance(reported, Ended)
        for one in thoughts.read(reported):
            yield one
    if not ended:
        raise ServerFault(f"{host} broke the answer off before its end.")


def _other_model(event: Any, asked: str) -> str:
    """Return the model that an event names, if it is another; "" for the one that was asked, or a version of it."""
    name = text_at(event, "model")
    return "" if not name or name.startswith(asked) or asked.endswith(name) or asked.startswith(name) else name


def _shorter(asked: Asked, full: ContextFull) -> Asked | None:
    """Return what to ask instead: for a shorter answer, or with a quarter of the earlier turns left out; None if
    neither is possible.
    """
    head = 1 if asked.messages[0].role == "system" else 0
    last = next(place for place in range(len(asked.messages) - 1, -1, -1) if asked.messages[place].role == "user")
    turns = (last - head) // 2
    room = full.room if full.room is not None and full.room < asked.most_tokens else None
    if room is not None and (room >= LEAST_ROOM or not turns):
        return replace(asked, most_tokens=room, whole_length=False)
    if not turns:
        return None
    dropped = 2 * max(1, turns // 4)
    return replace(asked, messages=[*asked.messages[:head], *asked.messages[head + dropped :]])


class _Bounds:
    """The most that an answer may have by the longest that was asked for, so that no server fills memory and disk."""

    def __init__(self, most_tokens: int) -> None:
        self._most_tokens = most_tokens
        self._tokens = self._characters = self._events = 0

    @property
    def first(self) -> bool:
        """Whether no event has been read yet."""
        return not self._events

    def take(self, one: Report, host: str) -> None:
        """Count what an event tells.

        Raises:
            ServerFault: it is too much.
        """
        if not isinstance(one, Tokens):
            return
        if any(len(piece) > MOST_PIECE for piece in one.pieces):
            raise ServerFault(f"{host} sent a chunk of the answer that is far too large.")
        self._tokens += len(one.token_ids)
        self._characters += sum(map(len, one.pieces))
        if self._tokens > self._most_tokens + TOKENS_TOO_MANY or self._characters > MOST_TEXT:
            raise self._endless(host)

    def take_event(self, host: str) -> None:
        """Count an event; see `take`."""
        self._events += 1
        if self._events > EVENTS_FOR_A_TOKEN * self._most_tokens + MORE_EVENTS:
            raise self._endless(host)

    def _endless(self, host: str) -> ServerFault:
        return ServerFault(f"{host} goes on after the {self._most_tokens:,} tokens that were asked for.")
