"""Writes a conversation as Markdown: questions, answers, and a short table of figures for each answer.

What people typed stays text, even if it looks like markup. The markup of answers stays, without HTML, links and
pictures, which become text too: nothing is fetched. Code between fences is code in both.
"""

import re
from collections.abc import Iterable, Iterator

from ladechat.export.conversation import SYSTEM, ExportedTurn, Talk
from ladechat.widgets.flow import safe, safe_with_tabs

FENCE = re.compile(r"^ {0,3}(```+|~~~+)\s*([\w+#.-]*)[^`]*$")
_MEANT = re.compile(r"([\\`*_{}\[\]<>#&|~$])")
"""Characters that could become markup, except in lists: dashes and numbers stay as they are."""
_CODE_OR_HARM = re.compile(r"(`+)(?!`)([^|]+?)(?<!`)\1(?!`)|`+|[\\<&\[\]$~]")
"""A code span that a table cannot cut in two; else what could be HTML, a link, half a span, or a fence in a list."""


def markdown(talk: Talk) -> str:
    """Return the document."""
    parts = [f"# {_line(talk.title)}"]
    parts += [f"*{_line(notice)}*" for notice in talk.notices]
    for turn, changed in talk.changes():
        parts += _turn(turn, changed, talk.model)
    parts.append(f"*{_line(f'Recorded by {talk.program}, {talk.started}.')}*")
    return "\n\n".join(parts) + "\n"


def _turn(turn: ExportedTurn, changed: dict[str, str], model: str) -> Iterator[str]:
    if turn.begins_anew:
        yield "---"
    yield from _conditions(changed)
    if turn.question is not None:
        yield "## You"
        yield as_text(turn.question)
    if turn.steps or turn.earlier_answer:
        yield f"## {_line(turn.model or model)}"
        if thoughts := turn.thoughts:
            yield f"<details>\n<summary>{turn.thinking}</summary>"
            yield from (as_text(thoughts), "</details>")
        yield as_text(turn.answer, markup=True)
    if turn.steps:
        yield _table(turn.figures())
    for notice in turn.notices:
        yield f"*{_line(notice)}*"


def _conditions(changed: dict[str, str]) -> Iterator[str]:
    """Yield the conditions of the answers from here on."""
    said = changed.get(SYSTEM)
    if words := [f"{name}: {value}" for name, value in changed.items() if name != SYSTEM]:
        yield f"*{_line(' · '.join(words))}*"
    if said is not None:
        yield f"*{SYSTEM}{':' if said else ': none'}*"
    if said:
        yield "\n".join(f"> {line}".rstrip() for line in as_text(said).split("\n"))


def as_text(text: str, *, markup: bool = False) -> str:
    """Return text, escaped, or with its `markup` as far as that is harmless; code between fences stays code, and an
    open fence is closed at the end.
    """
    escape = _harmless if markup else _escaped
    lines: list[str] = []
    fence: str | None = None
    for line in safe_with_tabs(text.strip()).split("\n"):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
            lines.append(fence + mark[2])
        elif fence is not None and mark and mark[1].startswith(fence) and not mark[2]:
            lines.append(fence)
            fence = None
        else:
            lines.append(line if fence else f"{escape(safe(line))}  ")
    return "\n".join([*lines, fence] if fence else lines).rstrip()


def _table(figures: dict[str, str]) -> str:
    names, values = map(_row, (figures, figures.values()))
    return "\n".join([names, f"|{'---|' * len(figures)}", values])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_line, cells))} |"


def _escaped(line: str) -> str:
    return _MEANT.sub(r"\\\1", line).rstrip()


def _harmless(line: str) -> str:
    return _CODE_OR_HARM.sub(lambda found: found[0] if found[1] else _escaped(found[0]), line).rstrip()


def _line(text: str) -> str:
    return _escaped(" ".join(safe(text).split()))
