"""Writes the lessons as one self-contained page that plays: cards, answers, and the panels after each pass.

Without a script it is a text: all cards with the panels that they are about, and the answers; the outcome of a
prediction is folded away.
"""

import base64
import json
import zlib
from collections.abc import Iterator
from itertools import pairwise

from ladechat.export.lessons import Moment, ShownCard, ShownLessons, ShownScene
from ladechat.export.page import LEGEND, answer, document, inline, measured_by, text
from ladechat.export.pictures import Picture, Run
from ladechat.export.race_page import CONTROLS
from ladechat.lessons.lesson import Phase
from ladechat.lessons.scenes import CHAPTERS
from ladechat.screens.learn.screen import ANSWERS
from ladechat.widgets.formatting import describe_settings

TITLE = "Lookahead decoding and hidden transfer, in scenes"
KEYS = (
    "Space plays and pauses, ← and → go pass by pass, Enter goes to the next card, a number answers a prediction. "
    "It plays by itself and waits where you may predict."
)
PHASES = list(Phase)


def lesson_page(lessons: ShownLessons) -> str:
    """Return the page."""
    body = [
        f'<p class="contents">{" ".join(map(_link, lessons.scenes))}</p>',
        CONTROLS.format(more="", keys=KEYS),
        *(line for shown in lessons.scenes for line in _scene(shown, lessons.looks.usual)),
        f'<p class="legend">{LEGEND}</p>',
        f'<p class="about">Every answer and figure was {measured_by(lessons.header)}.</p>',
        f'<script type="application/octet-stream" class="film">{_film(lessons.scenes)}</script>',
    ]
    return document(TITLE, body, ["page", "player", "lesson"], lessons.looks.rules())


def _link(shown: ShownScene) -> str:
    return f'<a href="#{inline(shown.scene.name)}">{_title(shown)}</a>'


def _title(shown: ShownScene) -> str:
    return f"{CHAPTERS.index(shown.scene) + 1} {inline(shown.scene.title)}"


def _scene(shown: ShownScene, usual: int) -> Iterator[str]:
    scene = shown.scene
    yield f'<section class="scene" id="{inline(scene.name)}">'
    yield f"<h2>{_title(shown)}</h2>"
    yield '<div class="answers">'
    for run in shown.runs:
        assert run.settings is not None
        drawn = f" · T {run.settings.temperature:g}" if run.settings.temperature else ""
        with_what = describe_settings(run.settings, shown.decoders) + drawn
        yield '<div class="run">'
        yield f'<p class="figures">“{inline(scene.question)}” · {inline(with_what)}</p>'
        yield answer(run.steps)
        yield "</div>"
    yield '</div><div class="cards">'
    before: Picture = ()
    for number, card in enumerate(shown.cards):
        picture = [moment.picture for moment in shown.moments if moment.card == number][-1]
        as_before = picture == before or not shown.runs
        yield from _card(card, f"card {number + 1} of {len(shown.cards)}", () if as_before else picture, usual)
        before = picture
    yield "</div>"
    yield '<pre class="panels now"></pre>' if shown.runs else ""
    yield "</section>"


def _card(card: ShownCard, place: str, picture: Picture, usual: int) -> Iterator[str]:
    """Yield a card, with the panels as they are at its end; without them if there is nothing new in them."""
    yield f'<article class="card" data-running="{inline(ANSWERS)}"><p class="figures">{place}</p>'
    yield f'<p class="asked">{text(card.question)}</p>' if card.question else ""
    if card.choices:
        yield f'<ol class="choices">{"".join(f"<li>{inline(choice)}</li>" for choice in card.choices)}</ol>'
    if card.hides:
        summary = "See what happened" if card.choices else "See the answer"
        yield f'<details class="outcome" data-outcome="{card.outcome}"><summary>{summary}</summary>'
    if card.outcome is not None:
        yield f'<p class="true">✓ {inline(card.choices[card.outcome])}</p>'
    yield f'<p class="said text">{text(card.text)}</p>'
    yield _drawn(picture, usual) if picture else ""
    yield f"{'</details>' if card.hides else ''}</article>"


def _drawn(picture: Picture, usual: int) -> str:
    """Return a picture, in which runs of the usual look need no element of their own, with one blank row for many."""
    rows = [row for before, row in pairwise(((), *picture)) if before or row]
    drawn = "\n".join("".join(_styled(look, part, usual) for look, part in row) for row in rows)
    return f'<pre class="panels s{usual}">{drawn}</pre>'


def _styled(look: int, part: str, usual: int) -> str:
    return text(part) if look == usual or not part.strip() else f'<span class="s{look}">{text(part)}</span>'


def _film(scenes: list[ShownScene]) -> str:
    """Return all moments, and the rows of their pictures, each once: JSON, compressed."""
    rows: dict[tuple[Run, ...], int] = {}
    moments = [[_numbered(moment, rows) for moment in shown.moments] for shown in scenes]
    film = json.dumps({"rows": list(rows), "scenes": moments}, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(film.encode(), 9)).decode()


def _numbered(moment: Moment, rows: dict[tuple[Run, ...], int]) -> list[object]:
    """Return a moment as numbers, with new rows added to the table."""
    picture = [rows.setdefault(row, len(rows)) for row in moment.picture]
    return [moment.card, PHASES.index(moment.phase), moment.runs, moment.steps, picture]
