"""What all exported pages share: one file with its own style and script, answers in the colours of their steps.

All text is escaped. A page's content security policy allows its own style and script alone, and no request.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from ladechat.palette import HUES, Palette
from ladechat.protocol import Header, ServerInfo, Step
from ladechat.widgets.cells import visible
from ladechat.widgets.flow import safe, safe_with_tabs
from ladechat.widgets.formatting import is_own, name_of, plural
from ladechat.widgets.steps.explained import source_of
from ladechat.widgets.units import CHUNK, PASS, STEP, shared_unit, unit_of

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
LEGEND = (
    "One colour is one forward pass: tokens of the same colour came together, plain ones came alone. "
    "Drafted tokens are underlined or bold by turns; the model's own token at the end of a pass has its colour alone."
)
LEGEND_OF_CHUNKS = "One colour is one chunk of a server's stream: the server does not tell the passes behind it."
LEGENDS = {PASS: LEGEND, CHUNK: LEGEND_OF_CHUNKS, STEP: f"{LEGEND} Or, where it says chunks: {LEGEND_OF_CHUNKS}"}


def document(title: str, body: Iterable[str], assets: Sequence[str], looks: str = "") -> str:
    """Return a page of a title, as text, and a body, in HTML. `assets` are its style sheets and scripts in this folder,
    without their endings, in order; `looks` are further rules for the style sheet.
    """
    style, script = (_colours() + looks + _assets(assets, ".css")), _assets(assets, ".js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{inline(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{inline(title)}</h1>",
            *body,
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def answer(steps: Sequence[Step], earlier: str = "") -> str:
    """Return an answer, one span a step, with inner spans for drafted tokens, after `earlier` text, whose steps are
    unknown; leading whitespace is removed.
    """
    return f'<p class="said answer">{text(earlier.lstrip())}{"".join(_spans(steps, bool(earlier.strip())))}</p>'


def _spans(steps: Sequence[Step], begun: bool, *, thought: bool = False) -> Iterator[str]:
    for step in steps:
        inside = ""
        cues = [_cue(step, token) for token in range(len(step.pieces))]
        part = slice(step.reasoning) if thought else slice(step.reasoning, None)
        for cue, tokens in groupby(range(len(cues))[part], cues.__getitem__):
            said = "".join(step.pieces[token] for token in tokens)
            said = said if begun else said.lstrip()
            begun = begun or bool(said)
            inside += f'<span class="{cue}">{text(said)}</span>' if cue else text(said)
        yield f'<span class="{hue(step)}">{inside}</span>'


def thoughts(steps: Sequence[Step], heading: str) -> str:
    """Return the reasoning before an answer in the colours of its steps, to be unfolded."""
    said = "".join(_spans([step for step in steps if step.reasoning], begun=False, thought=True))
    return f'<details><summary>{inline(heading)}</summary><p class="said">{said}</p></details>'


def hue(step: Step) -> str:
    """Return the CSS class of a step's colour."""
    look = PALETTE.style_of_step(step.index, len(step.token_ids))
    return "plain" if look.color is None else f"hue{step.index % len(HUES[True])}"


def _cue(step: Step, token: int) -> str:
    """Return the CSS class of a drafted token's cue, which does not depend on colour."""
    look = PALETTE.style_of_step(step.index, len(step.token_ids), own=is_own(step, token))
    return "bold" if look.bold else "underlined" if look.underline else ""


def legend(servers: Iterable[ServerInfo | None]) -> str:
    """Return what a colour is, in answers of these servers, or of this machine."""
    return LEGENDS[shared_unit(servers)]


def table(steps: Sequence[Step], server: ServerInfo | None, *, timed: bool = False) -> Iterator[str]:
    """Yield a table with the facts about each step, as far as they are known: tokens, slots, drafts; if `timed` its
    milliseconds too.
    """
    unit = unit_of(server)
    yield f'<details><summary>All {plural(2, unit)}</summary><div class="steps"><table><thead><tr>'
    yield f'<th scope="col">{unit}</th><th scope="col" class="tokens">tokens</th>'
    counts = _counts(steps, server)
    named = [*counts, *(["tokens per pass"] if unit == PASS else []), *(["ms"] if timed else [])]
    yield "".join(f'<th scope="col">{name}</th>' for name in named)
    yield "</tr></thead><tbody>"
    tokens = 0
    for number, step in enumerate(steps, start=1):
        tokens += len(step.token_ids)
        told = (column[number - 1] for column in counts.values())
        cells = ["–" if count is None else f"{count:,}" for count in told]
        cells += [f"{tokens / number:.2f}"] if unit == PASS else []
        cells += [f"{step.timing.step_ms:.1f}"] if timed else []
        facts = "".join(f"<td>{cell}</td>" for cell in cells)
        yield f'<tr><td>{number:,}</td><td class="tokens">{_tokens(step)}</td>{facts}</tr>'
    yield "</tbody></table></div></details>"


def _counts(steps: Sequence[Step], server: ServerInfo | None) -> dict[str, list[int | None]]:
    """Return columns of counts, by name; of a server's steps those that it tells, None where it tells none."""
    if server is None:
        drafted = [len(step.draft.token_ids) if step.draft else 0 for step in steps]
        return {"slots": [step.timing.slots for step in steps], "drafted": [*drafted]}
    told = [step.drafted for step in steps]
    return {"drafted": told} if any(count is not None for count in told) else {}


def _tokens(step: Step) -> str:
    return " ".join(
        f'<code class="{f"{hue(step)} {_cue(step, token)}".rstrip()}">{escape(visible(piece))}</code> '
        f'<span class="source">{inline(source_of(step.origins[token]).name)}</span>'
        for token, piece in enumerate(step.pieces)
    )


def measured_by(header: Header) -> str:
    """Return which program measured what is on the page, with which model, and on which day."""
    return inline(f"measured by {header.program} with {name_of(header.model)}, {header.started[:10]}")


def notice(sentence: str) -> str:
    """Return a paragraph with a message."""
    return f'<p class="notice">{text(sentence)}</p>'


def text(several_lines: str) -> str:
    """Return text of several lines, escaped."""
    return escape(safe_with_tabs(several_lines))


def inline(one_line: str) -> str:
    """Return text as one line, escaped."""
    return escape(" ".join(safe(one_line).split()))


def _colours() -> str:
    """Return the palette as CSS variables; light unless the reader's system is dark."""
    hues = "".join(f".hue{number} {{ color: var(--hue{number}); }}\n" for number in range(len(HUES[True])))
    return f"{on_both(_variables)}\n{hues}"


def on_both(rules: Callable[[bool], str]) -> str:
    """Return the rules for a light background, and those that replace them on a dark one."""
    return f"{rules(False)}\n@media (prefers-color-scheme: dark) {{ {rules(True)} }}"


def _variables(dark: bool) -> str:
    colours = {**SURFACES[dark], **{f"hue{number}": colour for number, colour in enumerate(HUES[dark])}}
    return f":root {{ {' '.join(f'--{name}: {colour};' for name, colour in colours.items())} }}"


def _assets(names: Sequence[str], ending: str) -> str:
    paths = (Path(__file__).with_name(name + ending) for name in names)
    return "".join(path.read_text(encoding="utf-8") for path in paths if path.exists())


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
