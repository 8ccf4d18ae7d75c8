"""Complete messages, and those that a saved exchange is shown as."""

from collections.abc import Sequence
from typing import NamedTuple

from ladechat import protocol
from ladechat.catalog import SERVER
from ladechat.widgets.flow import PLAIN, UNKNOWN, Ink, Run
from ladechat.widgets.formatting import describe_finish, name_of
from ladechat.widgets.steps.explained import EARLIER
from ladechat.widgets.steps.thinking import Thinking
from ladechat.widgets.transcript.block import Kind
from ladechat.widgets.units import unit_of

THINKS = " thinks"
"""What the name of reasoning has after that of the model."""


class WholeMessage(NamedTuple):
    """A complete message. A notice has the figures of the answer above it.

    Attributes:
        kind: whose message it is.
        name: the name above it.
        runs: its text, in stretches of one style.
        length: of thoughts, how long they are, in words; else "".
    """

    kind: Kind
    name: str
    runs: Sequence[Run]
    length: str = ""


def messages_of(exchange: protocol.Exchange, turn: int = 0) -> list[WholeMessage]:
    """Return the messages that show an exchange: question, thoughts, answer and figures, as far as they are known.

    With its saved steps it also has thoughts and colours; `turn` is the turn of those steps on the screen.
    """
    steps, name = protocol.drawn(exchange.steps), name_of(exchange.model)
    runs = [
        (
            token < step.reasoning,
            (piece, Ink("step", turn, place, len(step.pieces), token, len(step.pieces) > 1 and origin == "model")),
        )
        for place, step in enumerate(steps)
        for token, (piece, origin) in enumerate(zip(step.pieces, step.origins, strict=False))
    ]
    thoughts, said = ([run for thought, run in runs if thought is wanted] for wanted in (True, False))
    if "".join(piece for piece, _ in said) != exchange.answer:
        steps, thoughts, said = [], [], [(exchange.answer, UNKNOWN)]
    messages = [WholeMessage("user", "You", [(exchange.question, PLAIN)])]
    if "".join(piece for piece, _ in thoughts).strip():
        length = Thinking().after(steps).in_words(unit_of(exchange.server))
        messages.append(WholeMessage("thought", f"{name}{THINKS}", thoughts, length))
    if exchange.answer or len(messages) == 1:
        messages.append(WholeMessage("model", name, said))
    of_server = exchange.decoder == SERVER.name and exchange.server is None  # which is not saved by earlier versions
    if exchange.ended is not None or (steps and not of_server):
        remembered = sum(step.origins.count(EARLIER) for step in steps)
        figures = describe_finish(protocol.end_of(exchange, len(steps)), remembered, server=exchange.server)
        messages.append(WholeMessage("notice", "", [(figures, Ink("muted"))]))
    return messages
