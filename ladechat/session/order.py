"""Checks the order of events in a stream, which no single event can show."""

from ladechat.protocol import (
    Asked,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    ExchangeRestored,
    Failed,
    Header,
    PolicyChoice,
    Prefilling,
    ProtocolError,
    Step,
    TurnFinished,
    TurnStarted,
    decode_event,
)


class Order:
    """Reads the lines of a stream in order, live or from a recording.

    A stream begins with its header. Steps, and the end of a turn, belong to a turn that was asked or has started, and
    has neither ended nor been cleared with its conversation.

    Args:
        restarts: whether more headers may follow, as in a recording: each engine that was restarted sends its own.
    """

    def __init__(self, *, restarts: bool) -> None:
        self._restarts = restarts
        self._begun = False
        self._turn: int | None = None

    def event(self, line: bytes) -> Event | None:
        """Return the event in the next line; None for a kind that this version does not know.

        Raises:
            ProtocolError: the line is no event, or one that may not come at this place. Reading can continue after it.
        """
        event = decode_event(line)
        match event:
            case None:
                pass
            case Header():
                if self._begun and not self._restarts:
                    raise ProtocolError("it is a second header")
                self._begun, self._turn = True, None
            case _ if not self._begun:
                raise ProtocolError("it comes before the header")
            case Asked() | TurnStarted():
                self._turn = event.turn
            case Step() | Prefilling() | PolicyChoice() | TurnFinished():
                if event.turn != self._turn:
                    raise ProtocolError(f"question {event.turn} is not being answered")
                if isinstance(event, TurnFinished):
                    self._turn = None
            case ConversationCleared() | ConversationOpened() | ExchangeRemoved() | ExchangeRestored():
                self._turn = None
            case Failed(fatal=True):
                self._turn = None
        return event
