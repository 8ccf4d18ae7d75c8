"""What all kinds of servers have in common: a request, and a reader of the events that answer it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ladechat.remote.connection import Connection
from ladechat.remote.reports import Asked, Ended, Report


@dataclass(frozen=True)
class Request:
    """Where an answer is asked for, with what, and whether the prompt's end already opens the model's thoughts."""

    url: str
    body: dict[str, Any]
    thinks: bool = False


class Reader(Protocol):
    """Reads the events of one answer."""

    def read(self, event: Any) -> Iterator[Report]:
        """Yield what an event tells."""

    def end(self) -> Iterator[Report]:
        """Yield what is left once the stream has ended; its last is an `Ended`, unless the stream broke off."""


class Dialect(Protocol):
    """A kind of server.

    Attributes:
        passes, token_ids, logprobs: what it tells, as in `protocol.ServerInfo`.
        continues: whether it can continue an answer.
    """

    passes: ClassVar[bool]
    token_ids: ClassVar[bool]
    logprobs: ClassVar[bool]
    continues: ClassVar[bool]

    async def request(self, connection: Connection, asked: Asked) -> Request:
        """Return the request for an answer, which may take a question to the server before.

        Raises:
            ServerFault: that cannot be answered.
        """

    def reader(self, asked: Asked) -> Reader:
        """Return the reader of its answer."""


def reason_of(finish: str, asked: Asked, tokens: int | None) -> Ended:
    """Return the end of an answer for a finish reason of the OpenAI API: "length" is the user's limit, or the end of
    the context where that comes first.
    """
    if finish != "length":
        return Ended("eos")
    at_limit = asked.whole_length and (tokens is None or tokens >= asked.most_tokens)
    return Ended("max_new_tokens" if at_limit else "context")
