"""Writes a conversation as one self-contained page: steps in their colours, and a slider that walks through them."""

from collections.abc import Iterator

from ladechat.export.conversation import ExportedTurn, Talk
from ladechat.export.page import answer, document, inline, legend, notice, table, text, thoughts

SLIDER = (
    '<div class="walk"><label><span class="place"></span>'
    '<input type="range" min="0" max="{steps}" value="{steps}" aria-label="{unit}" autocomplete="off"></label>'
    '<dl class="known"></dl></div>'
)


def html(talk: Talk) -> str:
    """Return the page."""
    body = [
        f'<p class="about">Recorded by {inline(talk.program)}, {inline(talk.started)}.</p>',
        f'<p class="legend">{legend(turn.server for turn in talk.turns)}</p>',
        *map(notice, talk.notices),
        *(line for turn, changed in talk.changes() for line in _turn(turn, changed, talk.model)),
    ]
    return document(talk.title, body, ["page", "walk"])


def _turn(turn: ExportedTurn, changed: dict[str, str], model: str) -> Iterator[str]:
    yield f'<section class="turn{" anew" if turn.begins_anew else ""}">'
    if changed:
        named = (f"<dt>{name}</dt><dd>{text(value.strip()) or 'none'}</dd>" for name, value in changed.items())
        yield f'<dl class="conditions">{"".join(named)}</dl>'
    if turn.question is not None:
        yield "<h2>You</h2>"
        yield f'<p class="said question">{text(turn.question.strip())}</p>'
    if turn.steps or turn.earlier_answer:
        yield f'<div class="{"walkable" if turn.steps else "kept"}">'
        yield f"<h2>{inline(turn.model or model)}</h2>"
        if turn.thoughts:
            yield thoughts(turn.steps, turn.thinking)
        yield answer(turn.steps, turn.earlier_answer)
        if turn.steps:
            yield f'<p class="figures">{inline(turn.summary)}</p>'
            yield SLIDER.format(steps=len(turn.steps), unit=turn.unit.capitalize())
            yield from table(turn.steps, turn.server)
        yield "</div>"
    yield from map(notice, turn.notices)
    yield "</section>"
