"""Whatever the theme, text can be read: its contrast with what it is drawn on is at least WCAG's 4.5."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color
from textual.geometry import Offset
from textual.theme import BUILTIN_THEMES

from ladechat.app import LadechatApp
from ladechat.contrast import LEAST, SURFACES, TEXT, contrast, readable, readable_variables
from tests import scenes
from tests.scenes import Scene
from tests.waiting import brings

SHAPES = re.compile(r"[\s\u2500-\u259f]*")
"""Lines, bars and blocks, which say nothing that a number or a word does not say too."""
SCENES: dict[str, Callable[[Path], Scene]] = {
    "questions, answers, panels, figures": lambda folder: scenes.after_answer("left"),
    "an answer under way": lambda folder: scenes.mid_answer(),
    "questions that wait": lambda folder: scenes.queue(),
    "an error": lambda folder: scenes.error(),
    "help": lambda folder: scenes.after_answer("f1"),
    "explanations": lambda folder: scenes.after_answer("question_mark"),
    "conversations": lambda folder: scenes.conversations(folder),
    "models": lambda folder: scenes.after_command("/model", folder),
    "settings": lambda folder: scenes.after_command("/settings"),
    "replay": lambda folder: scenes.replay(),
    "race": lambda folder: scenes.race(),
}
WEAK = ("solarized-light", "atom-one-light", "catppuccin-frappe")
"""Themes whose own colours are too near to one another."""
colours = st.builds(Color, *[st.integers(0, 255)] * 3)


def unreadable(app: LadechatApp) -> list[str]:
    """The texts of the uppermost screen whose contrast is less than it has to be."""
    found, parts = [], [part.region for part in app.screen.children if part.display]
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        x = 0
        for segment in strip:
            (text, style, _), place = segment, Offset(x, y)
            x += segment.cell_length
            if not style or not style.color or not style.bgcolor or SHAPES.fullmatch(text):
                continue
            drawn, behind = (Color(*colour.get_truecolor()) for colour in (style.color, style.bgcolor))
            if any(part.contains_point(place) for part in parts) and (ratio := contrast(drawn, behind)) < LEAST:
                found.append(f"{text.strip()!r}: {ratio:.2f}")
    return found


async def everywhere_unreadable(scene: Scene, themes: Iterable[str]) -> dict[str, list[str]]:
    """The same of a screen, for each theme in which there are any."""
    found, app = {}, scene.app
    async with app.run_test(size=(120, 40)) as pilot:
        await scene.prepare(pilot)
        for theme in themes:
            background = Color.parse(BUILTIN_THEMES[theme].to_color_system().generate()["background"])
            async with brings(lambda: app.screen_stack[0].styles.background == background, pilot):
                app.theme = theme
            if texts := unreadable(app):
                found[theme] = texts
    return found


async def test_all_text_of_the_chat_can_be_read_in_themes_with_weak_colours() -> None:
    assert await everywhere_unreadable(scenes.after_answer("left"), WEAK) == {}


@pytest.mark.full
@pytest.mark.parametrize("name", SCENES)
async def test_all_text_of_a_screen_can_be_read_in_every_theme(name: str, tmp_path: Path) -> None:
    scene = SCENES[name](tmp_path)
    offered = [theme for theme in BUILTIN_THEMES if not theme.startswith("ansi") and theme != scene.app.theme]
    assert await everywhere_unreadable(scene, offered) == {}


@pytest.mark.parametrize("name", [name for name in BUILTIN_THEMES if not name.startswith("ansi")])
def test_the_keys_of_the_footer_and_all_text_colours_can_be_read_in_every_theme(name: str) -> None:
    theme = BUILTIN_THEMES[name]
    before = {**theme.to_color_system().generate(), **theme.variables}
    variables = readable_variables(before)
    low = {
        (text, behind): round(contrast(Color.parse(variables[text]), Color.parse(variables[behind])), 2)
        for text, surfaces in {**TEXT, "text-muted": SURFACES}.items()
        for behind in surfaces
        if variables[behind] != "transparent"
    }
    assert {pair: ratio for pair, ratio in low.items() if ratio < LEAST} == {}
    assert {name for name in before if before[name] != variables[name]} <= {"text-muted", *TEXT}


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
