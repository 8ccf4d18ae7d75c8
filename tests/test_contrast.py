"""Whatever the theme, text can be read: its contrast with what it is drawn on is at least WCAG's 4.5."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from rich.color import ColorSystem
from textual.color import Color, ColorParseError
from textual.geometry import Offset
from textual.theme import BUILTIN_THEMES

from ladechat.app import LadechatApp
from ladechat.contrast import (
    LEAST,
    SCROLLBARS,
    SURFACES,
    TEXT,
    TRACKS,
    contrast,
    displayed,
    readable,
    readable_variables,
)
from ladechat.lessons.lesson import Phase
from ladechat.palette import HUES_ON, Depth
from tests import scenes
from tests.scenes import Scene
from tests.test_palette import TERMINALS
from tests.waiting import brings

SHAPES = re.compile(r"[\s·\u2500-\u259f]*")
"""Lines, bars, blocks and dots, which say nothing that a number or a word does not say too."""
SCENES: dict[str, Callable[[Path], Scene]] = {
    "questions, answers, panels, figures": lambda folder: scenes.after_answer("left"),
    "an answer under way": lambda folder: scenes.mid_answer(),
    "of auto": lambda folder: scenes.mid_answer("auto"),
    "of hidden transfer": lambda folder: scenes.mid_answer("hidden_transfer"),
    "of plain decoding": lambda folder: scenes.mid_answer("autoregressive"),
    "in two colours": lambda folder: scenes.mid_answer("lookahead", "f4"),
    "formatted": lambda folder: scenes.after_answer("ctrl+g"),
    "a selection": lambda folder: scenes.selected(),
    "a text that was found": lambda folder: scenes.after_answer("ctrl+f", *"pool"),
    "a selected question": lambda folder: scenes.after_answer(*"Why? How?", "ctrl+a"),
    "a mask": lambda folder: scenes.after_answer("f10"),
    "a history": lambda folder: scenes.after_answer(*["left"] * 9, "f10", "f10"),
    "a focused slider": lambda folder: scenes.after_answer("tab", "tab", "tab", "tab"),
    "a focused conversation": lambda folder: scenes.after_answer("tab"),
    "commands": lambda folder: scenes.after_answer("slash"),
    "the palette": lambda folder: scenes.palette_open(),
    "a message": lambda folder: scenes.after_answer(*"/temperature 9", "enter"),
    "questions that wait": lambda folder: scenes.queue(),
    "an error": lambda folder: scenes.error(),
    "help": lambda folder: scenes.after_answer("f1"),
    "explanations": lambda folder: scenes.after_answer("question_mark"),
    "conversations": lambda folder: scenes.conversations(folder),
    "models": lambda folder: scenes.after_command("/model", folder),
    "settings": lambda folder: scenes.after_command("/settings"),
    "a system prompt": lambda folder: scenes.after_command("/system"),
    "a lesson": lambda folder: scenes.lesson(scenes.PREDICTED, Phase.EXPLAINED),
    "replay": lambda folder: scenes.replay(),
    "race": lambda folder: scenes.race(),
}
OFFERED = [name for name in BUILTIN_THEMES if not name.startswith("ansi")]
WEAK = ("solarized-light", "atom-one-light", "catppuccin-frappe")
"""Themes whose own colours are too near to one another."""
colours = st.builds(Color, *[st.integers(0, 255)] * 3)


def is_colour(value: str) -> bool:
    try:
        return not Color.parse(value).auto
    except ColorParseError:
        return False


def drawn_as(colour: Color, depth: Depth) -> list[Color]:
    """What the terminals of a depth draw: of 16 colours, each has its own."""
    if depth is not Depth.STANDARD:
        return [displayed(colour, depth)]
    number = colour.rich_color.downgrade(ColorSystem.STANDARD).number or 0
    return [Color.parse(f"#{palette.split()[number]}") for palette in TERMINALS.values()]


def unreadable(app: LadechatApp, depth: Depth = Depth.TRUE) -> list[str]:
    """The texts of the uppermost screen whose contrast is less than it has to be."""
    found, parts = [], {part.region for part in app.screen.query("*")}
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        x = 0
        for segment in strip:
            (text, style, _), place = segment, Offset(x, y)
            x += segment.cell_length
            if not style or not style.color or not style.bgcolor or SHAPES.fullmatch(text):
                continue
            drawn, behind = (drawn_as(Color(*one.get_truecolor()), depth) for one in (style.color, style.bgcolor))
            ratio = min(map(contrast, drawn, behind))
            if any(part.contains_point(place) for part in parts) and ratio < LEAST:
                found.append(f"{text.strip()!r}: {ratio:.2f}")
    return found


async def everywhere_unreadable(scene: Scene, themes: Iterable[str], depth: Depth) -> dict[str, list[str]]:
    """The same of a screen, for each theme in which there are any."""
    found, app = {}, scene.app
    async with app.run_test(size=(120, 40)) as pilot:
        await scene.prepare(pilot)
        for theme in themes:
            shown: list[object] = []
            app.theme_changed_signal.subscribe(app, shown.append)
            async with brings(lambda: shown, pilot):
                app.theme = theme
            await scenes.settled(pilot)
            if texts := unreadable(app, depth):
                found[theme] = texts
    return found


@pytest.fixture(params=Depth)
def depth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Depth:
    """The depth of the terminal's colours, as the environment says it."""
    monkeypatch.setenv("TEXTUAL_COLOR_SYSTEM", request.param)
    return Depth(request.param)


async def test_all_text_of_the_chat_can_be_read_in_themes_with_weak_colours(depth: Depth) -> None:
    assert await everywhere_unreadable(scenes.after_answer("left"), WEAK, depth) == {}


@pytest.mark.full
@pytest.mark.parametrize("name", SCENES)
async def test_all_text_of_a_screen_can_be_read_in_every_theme(name: str, depth: Depth, tmp_path: Path) -> None:
    scene = SCENES[name](tmp_path)
    offered = [theme for theme in OFFERED if theme != scene.app.theme]
    assert await everywhere_unreadable(scene, [*offered, scene.app.theme], depth) == {}


@pytest.mark.parametrize("name", OFFERED)
def test_the_keys_of_the_footer_and_all_text_colours_can_be_read_in_every_theme(name: str, depth: Depth) -> None:
    theme = BUILTIN_THEMES[name]
    before = {**theme.to_color_system().generate(), **theme.variables}
    variables = {
        name: Color.parse(value) for name, value in readable_variables(before, depth).items() if is_colour(value)
    }
    hues = {hue: Color.parse(hue) for hue in HUES_ON[depth, theme.dark]}
    pairs = [
        *((text, behind) for text, surfaces in {**TEXT, "text-muted": SURFACES}.items() for behind in surfaces),
        *((hue, behind) for hue in hues for behind in SURFACES if behind != "panel"),
    ]
    low = {
        (text, behind): min(map(contrast, *(drawn_as({**variables, **hues}[one], depth) for one in (text, behind))))
        for text, behind in pairs
        if variables[behind].a
    }
    assert {pair: round(ratio, 2) for pair, ratio in low.items() if ratio < LEAST} == {}


@pytest.mark.parametrize("name", OFFERED)
def test_only_texts_selections_and_scroll_bars_have_other_colours_than_in_the_theme(name: str) -> None:
    theme = BUILTIN_THEMES[name]
    before = {**theme.to_color_system().generate(), **theme.variables}
    variables = readable_variables(before)
    other = {*SCROLLBARS, *TRACKS, "text-muted", "input-selection-background", *TEXT}
    assert {name for name in before if before[name].lower() != variables[name].lower()} <= other


async def test_scroll_bars_are_alike_everywhere(tmp_path: Path) -> None:
    looks = set()
    for scene in (scenes.after_answer("f1"), scenes.conversations(tmp_path), scenes.after_command("/settings")):
        async with scene.app.run_test(size=(80, 24)) as pilot:
            await scene.prepare(pilot)
            for widget in (widget for screen in scene.app.screen_stack for widget in screen.query("*")):
                styles = widget.styles
                looks.add((styles.scrollbar_size_vertical, styles.scrollbar_color, styles.scrollbar_color_active))
    assert len(looks) == 1


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
def test_colours_that_the_terminal_chooses_stay_as_they_are(name: str) -> None:
    variables = BUILTIN_THEMES[name].to_color_system().generate()
    assert readable_variables(variables) == variables


@given(colours, colours)
def test_any_colour_can_be_made_readable_on_any_other_and_one_that_is_stays(colour: Color, behind: Color) -> None:
    moved = readable(colour, behind)
    assert contrast(moved, behind) >= LEAST
    assert readable(moved, behind) == moved


def test_contrast_is_computed_as_wcag_does() -> None:
    black, white = Color.parse("#000000"), Color.parse("#ffffff")
    assert contrast(black, white) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), white) == pytest.approx(4.48, abs=0.01)
