"""Steps, sources and verdicts can be told apart: by colour on both backgrounds, and without colour too."""

from itertools import combinations, pairwise, product

import pytest
from hypothesis import given, strategies as st
from rich.color import Color as RichColor, ColorSystem
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from ladechat.contrast import contrast
from ladechat.palette import HUES_ON, VERDICT_MARKS, Depth, Look, Palette

THEMES = {True: "textual-dark", False: "textual-light"}
OFFERED = [theme for theme in BUILTIN_THEMES.values() if not theme.name.startswith("ansi")]
LOOKS = [Palette(dark=dark, look=look, depth=depth) for dark, look, depth in product((True, False), Look, Depth)]
EVERYWHERE = list(product(Depth, (True, False)))
SYSTEMS = {
    Depth.STANDARD: ColorSystem.STANDARD,
    Depth.EIGHT_BIT: ColorSystem.EIGHT_BIT,
    Depth.TRUE: ColorSystem.TRUECOLOR,
}

# What the 16 colours are in some terminals as they come; a user may have chosen others.
TERMINALS = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "vga": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "gnome": "171421 c01c28 26a269 a2734c 12488b a347ba 2aa1b3 d0cfcc "
    "5e5c64 f66151 33d17a e9ad0c 2a7bde c061cb 33c7de ffffff",
}


def cue(style: Style) -> tuple[bool, bool, bool]:
    return bool(style.underline), bool(style.bold), bool(style.reverse)


def drawn(colour: str, depth: Depth) -> RichColor:
    """What is left of a colour in a terminal of that depth, as Textual and rich bring it down."""
    return RichColor.parse(colour).downgrade(SYSTEMS[depth])


def seen(style: Style, depth: Depth) -> tuple[object, ...]:
    """What a terminal of that depth makes of a style."""
    left = style.color.downgrade(SYSTEMS[depth]) if style.color else None
    return left and (left.type, left.number, left.triplet), cue(style)


def number(colour: str) -> int:
    """Which of the 16 it becomes."""
    found = drawn(colour, Depth.STANDARD).number
    assert found is not None
    return found


@given(st.sampled_from(EVERYWHERE), st.integers(0, 100_000), st.integers(2, 16), st.integers(2, 16))
def test_two_steps_in_a_row_differ_in_hue_and_in_cue(
    where: tuple[Depth, bool], index: int, tokens: int, more: int
) -> None:
    depth, dark = where
    palette = Palette(dark=dark, depth=depth)
    one, other = (palette.style_of_step(index + i, n) for i, n in enumerate((tokens, more)))
    assert seen(one, depth)[0] != seen(other, depth)[0]
    assert cue(one) != cue(other)
    assert any(cue(one)) and any(cue(other))


@pytest.mark.parametrize(("depth", "dark"), EVERYWHERE)
def test_six_steps_in_a_row_all_look_different_in_the_colours_that_the_terminal_has(depth: Depth, dark: bool) -> None:
    looks = [seen(Palette(dark=dark, depth=depth).style_of_step(index, 2), depth) for index in range(6)]
    assert all(one != other for one, other in combinations(looks, 2))


def test_verdicts_differ_by_shape_and_have_no_hue() -> None:
    assert len(set(VERDICT_MARKS.values())) == len(VERDICT_MARKS) == 3
    assert all(Palette().verdict(name).color is None for name in VERDICT_MARKS)


@pytest.mark.parametrize("palette", [*LOOKS, Palette(colour=False)])
def test_a_step_of_one_token_is_plain(palette: Palette) -> None:
    assert all(palette.style_of_step(index, 1) == Style() for index in range(12))


@pytest.mark.parametrize(("depth", "dark"), EVERYWHERE)
def test_in_the_demo_look_every_parallel_step_is_the_same_blue(depth: Depth, dark: bool) -> None:
    styles = [Palette(dark=dark, depth=depth, look=Look.DEMO).style_of_step(index, 3) for index in range(12)]
    (blue,) = {style.color for style in styles}
    assert blue is not None
    red, green, blueness = blue.get_truecolor()
    assert blueness > red and blueness >= green  # of 16 on a dark background it is cyan: no blue can be read there
    assert all(cue(one) != cue(other) for one, other in pairwise(styles))


@pytest.mark.parametrize("look", Look)
@pytest.mark.parametrize(("depth", "dark"), EVERYWHERE)
def test_without_colour_no_style_has_any_and_cues_still_tell_neighbours_apart(
    look: Look, depth: Depth, dark: bool
) -> None:
    palette = Palette(colour=False, look=look, depth=depth, dark=dark)
    steps = [palette.style_of_step(index, 2) for index in range(12)]
    assert all(style.color is None and style.bgcolor is None for style in steps)
    assert all(cue(one) != cue(other) for one, other in pairwise(steps))


@pytest.mark.parametrize(("value", "colour"), [(None, True), ("", True), ("1", False), ("0", False)])
def test_no_color_is_honoured_whatever_it_says_unless_it_is_empty(
    value: str | None, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert Palette.detect().colour is colour


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Depth.TRUE),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, Depth.TRUE),
        ({"TERM": "xterm-256color"}, Depth.EIGHT_BIT),
        ({"TERM": "tmux-256color"}, Depth.EIGHT_BIT),
        ({"TERM": "xterm"}, Depth.STANDARD),
        ({"TERM": "linux"}, Depth.STANDARD),
        ({}, Depth.STANDARD),
        ({"TERM": "xterm", "TEXTUAL_COLOR_SYSTEM": "256"}, Depth.EIGHT_BIT),
        ({"TERM": "xterm", "TEXTUAL_COLOR_SYSTEM": "auto"}, Depth.STANDARD),
    ],
)
def test_the_depth_is_the_one_that_textual_draws_in(
    environment: dict[str, str], depth: Depth, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "COLORTERM", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("textual.constants.COLOR_SYSTEM", environment.get("TEXTUAL_COLOR_SYSTEM", "auto"))
    assert Palette.detect().depth == App[None]().console.color_system == depth


@pytest.mark.parametrize("surface", ["background", "surface"])
@pytest.mark.parametrize("theme", OFFERED, ids=lambda theme: theme.name)
def test_every_colour_can_be_read_on_the_surfaces_of_each_theme(theme: Theme, surface: str) -> None:
    behind = Color.parse(theme.to_color_system().generate()[surface])
    low = {name: contrast(Color.parse(name), behind) for name in HUES_ON[Depth.TRUE, theme.dark]}
    assert {name: round(ratio, 2) for name, ratio in low.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("surface", ["background", "surface"])
@pytest.mark.parametrize("dark", [True, False])
def test_of_256_colours_those_are_taken_that_can_be_read(dark: bool, surface: str) -> None:
    theme = BUILTIN_THEMES[THEMES[dark]].to_color_system().generate()[surface]
    behind = Color(*drawn(theme, Depth.EIGHT_BIT).get_truecolor())
    low = {
        name: contrast(Color(*drawn(name, Depth.EIGHT_BIT).get_truecolor()), behind)
        for name in HUES_ON[Depth.EIGHT_BIT, dark]
    }
    assert {name: round(ratio, 2) for name, ratio in low.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("surface", ["background", "surface"])
@pytest.mark.parametrize("dark", [True, False])
def test_of_sixteen_colours_those_are_taken_that_can_be_read(dark: bool, surface: str, terminal: str) -> None:
    shown = [Color.parse(f"#{colour}") for colour in TERMINALS[terminal].split()]
    behind = shown[number(BUILTIN_THEMES[THEMES[dark]].to_color_system().generate()[surface])]
    for colour in HUES_ON[Depth.STANDARD, dark]:
        assert contrast(shown[number(colour)], behind) >= 4.5, colour
