"""Writing of many kinds, in the conversation and in the panels, as it goes to terminals of 16, 256 and all colours.

Pictures as SVG have all colours whatever a terminal has; so here the screen is what Textual writes to a terminal of
each depth.
"""

import re
from itertools import groupby
from typing import NamedTuple

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from textual.strip import Strip

from ladechat.widgets.cells import cell_len
from ladechat.widgets.flow import safe
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.speed_panel import SpeedPanel
from tests.app.stage import Stage, ask
from tests.fake_engine import FakeEngine
from tests.waiting import brings, until


class Terminal(NamedTuple):
    """What a terminal can do, and what may then be written to it."""

    environment: dict[str, str]
    system: ColorSystem
    colours: re.Pattern[str]


TERMINALS = {
    "16": Terminal({"TERM": "xterm"}, ColorSystem.STANDARD, re.compile(r"[34][0-7]|9[0-7]|10[0-7]")),
    "256": Terminal({"TERM": "xterm-256color"}, ColorSystem.EIGHT_BIT, re.compile(r"[34]8;5;\d+")),
    "24-bit": Terminal({"COLORTERM": "truecolor"}, ColorSystem.TRUECOLOR, re.compile(r"[34]8;2;\d+;\d+;\d+")),
    "no colour": Terminal(
        {"COLORTERM": "truecolor", "NO_COLOR": "1"}, ColorSystem.TRUECOLOR, re.compile(r"[34]8;2;(\d+);\1;\1")
    ),
}
SCRIPTS = {
    "chinese": "窗口里的词元是猜测，模型同意的就被接受。池子记住它们。",
    "emoji": "A family 👨‍👩‍👧‍👦, a coder 👩🏽‍💻, a flag 🇨🇭, a heart ❤️ and a keycap 1️⃣ stand here.",
    "hindi": "नमस्ते दुनिया, हिन्दी में क्षमा और ज्ञान लिखते हैं।",
    "arabic": "السلام عليكم، هذه نافذة ياكوبي وهذا مجمع.",
    "whitespace": "one\ttwo  three\n\n   four\u00a0five\u3000six\u200bseven",
    "control": "red \x1b[31mnot\x1b[0m, bell \x07, back\x08, \x9b2J, half \ufffd\ufffd, \u202eright to left\u202c.",
}
WIDTH, HEIGHT = 100, 30
STYLING = re.compile(r"\x1b\[([\d;]*)m")
CUES = re.compile(r"(?:[1-9];)*")


async def screen(script: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[Strip]:
    """The app in the middle of an answer in this script, its panels filled."""
    for name in ("TERM", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stage = Stage(FakeEngine(answers=(SCRIPTS[script] * 2,), hold_steps=True), decoder="lookahead")
    async with stage.app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        async with brings(lambda: stage.activity == "answering …", pilot):
            await ask(pilot, SCRIPTS[script])
        async with brings(lambda: stage.app.query_one(SpeedPanel)._steps == stage.engine.steps_done == 7, pilot):
            stage.engine.release(7)
        await until(lambda: not any(panel.drawing.waits for panel in stage.app.query(Panel)), pilot)
        strips: list[Strip] = stage.app.screen._compositor.render_strips()
    return strips[:-3]  # below them, the prompt with its blinking cursor


def written(strip: Strip, system: ColorSystem) -> str:
    """A line of the screen as it goes to a terminal with so many colours, neighbours of one style together.

    Not by `Strip.render`: a style keeps the codes it was first rendered in, whatever the depth is the next time.
    """

    def codes(segment: Segment) -> str:
        return Strip.render_ansi(segment.style, system) if segment.style else ""

    parts = groupby(strip, codes)
    return "".join(f"\x1b[{style}m{''.join(text for text, *_ in segments)}" for style, segments in parts) + "\x1b[m"


@pytest.mark.full
@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_script_fills_its_lines_in_the_colours_of_the_terminal_and_steers_nothing(
    script: str, terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, system, colours = TERMINALS[terminal]
    lines = [written(strip, system) for strip in await screen(script, environment, monkeypatch)]
    for line in lines:
        bare = STYLING.sub("", line)
        assert bare.isprintable()
        assert cell_len(bare) == WIDTH
        left = {colours.sub("", CUES.sub("", codes, count=1)) for codes in STYLING.findall(line)}
        assert left <= {"", ";"}, "colours of another depth"
    shown = set("".join(STYLING.sub("", line) for line in lines))
    assert set(safe(SCRIPTS[script])) - {"\n"} <= shown
