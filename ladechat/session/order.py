"""What one event cannot tell by itself: whether it may come where it comes in its stream."""

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
    """Reads the lines of a stream in their order, live or from a recording.

    A stream begins with its header. Steps, and the end of a turn, belong to a turn that was asked or has started, and
    is neither at its end nor forgotten with its conversation.

    Args:
        restarts: whether other headers may follow, as in a recording: each engine that was started anew has its own.
    """

    def __init__(self, *, restarts: bool) -> None:
        self._restarts = restarts
        self._begun = False
        self._turn: int | None = None

    def event(self, line: bytes) -> Event | None:
        """The event in the next line, or None for a kind that this version does not know.

        Raises:
            ProtocolError: it is none, or none that may come here. The stream can be read on.
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
