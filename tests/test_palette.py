"""Steps, sources and verdicts can be told apart: by colour on both backgrounds, and without colour too."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from ladechat.palette import HUES, PARALLEL, SOURCES, VERDICTS, Look, Palette

THEMES = {True: "textual-dark", False: "textual-light"}
LOOKS = [Palette(dark=dark, look=look) for dark, look in product((True, False), Look)]


def cue(style: Style) -> tuple[bool, bool]:
    return bool(style.underline), bool(style.bold)


def relative_luminance(colour: Color) -> float:
    """As WCAG 2 defines it."""
    parts = [part / 255 for part in colour.rgb]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    low, high = sorted((relative_luminance(one), relative_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colours(dark: bool) -> list[str]:
    return [*HUES[dark], PARALLEL[dark], *SOURCES[dark].values(), *VERDICTS[dark].values()]


@given(st.sampled_from([True, False]), st.integers(0, 100_000), st.integers(2, 16), st.integers(2, 16))
def test_two_steps_in_a_row_differ_in_hue_and_in_cue(dark: bool, index: int, tokens: int, more: int) -> None:
    one, other = (Palette(dark=dark).step(index + i, n) for i, n in enumerate((tokens, more)))
    assert one.color != other.color
    assert cue(one) != cue(other)
    assert any(cue(one)) and any(cue(other))


@pytest.mark.parametrize("palette", [*LOOKS, Palette(colour=False)])
def test_a_step_of_one_token_is_plain(palette: Palette) -> None:
    assert all(palette.step(index, 1) == Style() for index in range(12))


@pytest.mark.parametrize("dark", [True, False])
def test_in_the_demo_look_every_parallel_step_is_the_same_blue(dark: bool) -> None:
    styles = [Palette(dark=dark, look=Look.DEMO).step(index, 3) for index in range(12)]
    (blue,) = {style.color for style in styles}
    assert blue is not None
    red, green, blueness = blue.get_truecolor()
    assert blueness > red and blueness > green
    assert all(cue(one) != cue(other) for one, other in pairwise(styles))


@pytest.mark.parametrize("look", Look)
def test_without_colour_no_style_has_any_and_cues_still_tell_neighbours_apart(look: Look) -> None:
    palette = Palette(colour=False, look=look)
    steps = [palette.step(index, 2) for index in range(12)]
    others = [palette.source(source) for source in SOURCES[True]] + [palette.verdict(name) for name in VERDICTS[True]]
    assert all(style.color is None and style.bgcolor is None for style in steps + others)
    assert all(cue(one) != cue(other) for one, other in pairwise(steps))


@pytest.mark.parametrize(("value", "colour"), [(None, True), ("", True), ("1", False), ("0", False)])
def test_no_color_is_honoured_whatever_it_says_unless_it_is_empty(
    value: str | None, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert Palette.detect().colour is colour


def test_a_source_and_a_verdict_without_a_colour_of_their_own_have_none() -> None:
    assert Palette().source("model") == Style()
    assert Palette().verdict("untested") == Style(dim=True)


@pytest.mark.parametrize("surface", ["background", "surface"])
@pytest.mark.parametrize("dark", [True, False])
def test_every_colour_can_be_read_on_the_surfaces_of_the_theme(dark: bool, surface: str) -> None:
    behind = Color.parse(BUILTIN_THEMES[THEMES[dark]].to_color_system().generate()[surface])
    low = {hex_: contrast(Color.parse(hex_), behind) for hex_ in colours(dark)}
    assert {hex_: round(ratio, 2) for hex_, ratio in low.items() if ratio < 4.5} == {}


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast(Color.parse("#000000"), Color.parse("#ffffff")) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), Color.parse("#ffffff")) == pytest.approx(4.48, abs=0.01)
