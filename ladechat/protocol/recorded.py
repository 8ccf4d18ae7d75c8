"""What the user's side adds to a recording: its own events, and the exchanges of a saved conversation.

A line of such an event repeats the `seq` of the engine's line before it. With them, a screen depends on nothing but
events.
"""

from ladechat.protocol.events import Event, TurnFinished
from ladechat.protocol.values import Count, Number, Record, ServerInfo, Settings, Text


class Exchange(Record, frozen=True):
    """A question and its answer, as part of a saved conversation.

    Attributes:
        token_ids: the answer's tokens, which are valid only for the model `model`.
        decoder: the name of the decoder that was in use when the answer ended.
        system: the system prompt of the question, "" for none; None if it is not known.
        settings: those that the answer began with; None if they are not known.
        steps: how it came about, see `packed_steps`; b"" if that is not known.
        server: the server that decoded it; None: its own machine did, or that is not known.
        ended: how it ended, with the figures of all its parts, see `endings`; None if that is not known.
    """

    question: Text
    answer: Text
    token_ids: list[Count]
    model: Text
    decoder: Text
    system: Text | None = None
    settings: Settings | None = None
    steps: bytes = b""
    server: ServerInfo | None = None
    ended: TurnFinished | None = None


class Asked(Event, frozen=True, tag="asked"):
    """The user asked a question. The engine starts with it when it can."""

    turn: Number
    text: Text


class ConversationCleared(Event, frozen=True, tag="conversation_cleared"):
    """The user started a new conversation."""


class ConversationOpened(Event, frozen=True, tag="conversation_opened"):
    """The user opened an earlier conversation instead of the present one. `exchanges`: oldest first."""

    exchanges: list[Exchange]


class ExchangeRemoved(Event, frozen=True, tag="exchange_removed"):
    """The last answered question is no longer in the conversation: it is asked again, or another variant is shown."""


class ExchangeRestored(Event, frozen=True, tag="exchange_restored"):
    """The conversation ends with this exchange again: its replacement got no answer, or the user went back to it."""

    exchange: Exchange


class SystemPrompt(Event, frozen=True, tag="system_prompt"):
    """The user set the system prompt, from the next question on; "": none."""

    text: Text


class Closed(Event, frozen=True, tag="closed"):
    """The last line of a recording that was ended on purpose. Without it, the session was interrupted."""
