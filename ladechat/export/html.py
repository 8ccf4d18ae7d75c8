"""Writes a conversation as one self-contained page: steps in their colours, and a slider that walks through them.

All text of the recording is escaped. The page's content security policy allows its own style and script alone, and no
request.
"""

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from ladechat.export.conversation import ExportedTurn, Talk
from ladechat.palette import HUES, Palette
from ladechat.protocol import Step
from ladechat.widgets.cells import visible
from ladechat.widgets.flow import safe, safe_with_tabs
from ladechat.widgets.formatting import is_own
from ladechat.widgets.steps.explained import source_of

SURFACES = {
    True: {
        "background": "#121212", "surface": "#1e1e1e", "text": "#e0e0e0", "muted": "#a0a0a0", "line": "#383838",
        "accent": "#6cb6ff", "here": "#3a3a3a",
    },
    False: {
        "background": "#ffffff", "surface": "#f3f3f3", "text": "#1e1e1e", "muted": "#5a5a5a", "line": "#d8d8d8",
        "accent": "#0a4f9e", "here": "#e4e4e4",
    },
}  # fmt: skip
"""The background colours, dark and light; near the app's own, so that each hue is legible."""
PALETTE = Palette()
"""Decides which tokens have a colour and which a cue; the page's own style sheet draws them."""
SLIDER = (
    '<div class="walk"><label><span class="place"></span>'
    '<input type="range" min="0" max="{steps}" value="{steps}" aria-label="Pass" autocomplete="off"></label>'
    '<dl class="known"></dl></div>'
)
LEGEND = (
    "One colour is one forward pass: tokens of the same colour came together, plain ones came alone. "
    "Drafted tokens are underlined or bold by turns; the model's own token at the end of a pass has its colour alone."
)


def html(talk: Talk) -> str:
    """Return the page."""
    style, script = _colours() + _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = _inline(f"A conversation with {talk.model}")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{title}</h1>",
            f'<p class="about">Recorded by {_inline(talk.program)}, {_inline(talk.started)}.</p>',
            f'<p class="legend">{LEGEND}</p>',
            *map(_notice, talk.notices),
            *(line for turn, changed in talk.changes() for line in _turn(turn, changed, talk.model)),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _turn(turn: ExportedTurn, changed: dict[str, str], model: str) -> Iterator[str]:
    yield f'<section class="turn{" anew" if turn.begins_anew else ""}">'
    if changed:
        named = (f"<dt>{name}</dt><dd>{_text(value.strip()) or 'none'}</dd>" for name, value in changed.items())
        yield f'<dl class="conditions">{"".join(named)}</dl>'
    if turn.question is not None:
        yield "<h2>You</h2>"
        yield f'<p class="said question">{_text(turn.question.strip())}</p>'
    if turn.steps or turn.earlier_answer:
        yield f'<div class="{"walkable" if turn.steps else "kept"}">'
        yield f"<h2>{_inline(turn.model or model)}</h2>"
        yield f'<p class="said answer">{_text(turn.earlier_answer.lstrip())}{"".join(_spans(turn))}</p>'
        if turn.steps:
            yield f'<p class="figures">{_inline(turn.summary)}</p>'
            yield SLIDER.format(steps=len(turn.steps))
            yield from _table(turn.steps)
        yield "</div>"
    yield from map(_notice, turn.notices)
    yield "</section>"


def _spans(turn: ExportedTurn) -> Iterator[str]:
    """Yield the answer, one span a step, with inner spans for drafted tokens; leading whitespace is removed."""
    begun = bool(turn.earlier_answer.strip())
    for step in turn.steps:
        inside = ""
        cues = [_cue(step, token) for token in range(len(step.pieces))]
        for cue, tokens in groupby(range(len(cues)), cues.__getitem__):
            text = "".join(step.pieces[token] for token in tokens)
            text = text if begun else text.lstrip()
            begun = begun or bool(text)
            inside += f'<span class="{cue}">{_text(text)}</span>' if cue else _text(text)
        yield f'<span class="{_hue(step)}">{inside}</span>'


def _hue(step: Step) -> str:
    """Return the CSS class of a step's colour."""
    look = PALETTE.style_of_step(step.index, len(step.token_ids))
    return "plain" if look.color is None else f"hue{step.index % len(HUES[True])}"


def _cue(step: Step, token: int) -> str:
    """Return the CSS class of a drafted token's cue, which does not depend on colour."""
    look = PALETTE.style_of_step(step.index, len(step.token_ids), own=is_own(step, token))
    return "bold" if look.bold else "underlined" if look.underline else ""


def _table(steps: list[Step]) -> Iterator[str]:
    """Yield a table with the facts about each step. The slider shows its rows one by one."""
    yield '<details><summary>All passes</summary><div class="steps"><table><thead><tr>'
    yield '<th scope="col">pass</th><th scope="col" class="tokens">tokens</th>'
    yield '<th scope="col">slots</th><th scope="col">drafted</th><th scope="col">tokens per pass</th>'
    yield "</tr></thead><tbody>"
    tokens = 0
    for number, step in enumerate(steps, start=1):
        tokens += len(step.token_ids)
        drafted = len(step.draft.token_ids) if step.draft else 0
        cells = f"<td>{step.timing.slots:,}</td><td>{drafted:,}</td><td>{tokens / number:.2f}</td>"
        yield f'<tr><td>{number:,}</td><td class="tokens">{_tokens(step)}</td>{cells}</tr>'
    yield "</tbody></table></div></details>"


def _tokens(step: Step) -> str:
    return " ".join(
        f'<code class="{f"{_hue(step)} {_cue(step, token)}".rstrip()}">{escape(visible(piece))}</code> '
        f'<span class="source">{_inline(source_of(step.origins[token]).name)}</span>'
        for token, piece in enumerate(step.pieces)
    )


def _notice(text: str) -> str:
    return f'<p class="notice">{_text(text)}</p>'


def _text(text: str) -> str:
    """Return text of several lines, escaped."""
    return escape(safe_with_tabs(text))


def _inline(text: str) -> str:
    return escape(" ".join(safe(text).split()))


def _colours() -> str:
    """Return the palette as CSS variables; light unless the reader's system is dark."""
    light, dark = (_variables(dark) for dark in (False, True))
    hues = "".join(f".hue{hue} {{ color: var(--hue{hue}); }}\n" for hue in range(len(HUES[True])))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{hues}"


def _variables(dark: bool) -> str:
    colours = {**SURFACES[dark], **{f"hue{number}": hue for number, hue in enumerate(HUES[dark])}}
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
