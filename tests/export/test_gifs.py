"""A GIF shows what the app shows: decoded, each cell of a frame has the colours of the app's cell."""

import sys
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from PIL import Image
from PIL.GifImagePlugin import GifImageFile
from rich.color_triplet import ColorTriplet
from rich.style import Style

from ladechat.export import glyphs
from ladechat.export.cells import Cell, Screen, changes
from ladechat.export.film import Frame
from ladechat.export.gif import LAST_DELAY, gif, pair_of
from ladechat.export.glyphs import BLOCKS, LINES, Glyphs
from tests.export.films import filmed
from tests.export.test_command import check_refused, export
from tests.session.streams import GOLDEN


def opened(content: bytes) -> GifImageFile:
    file = Image.open(BytesIO(content))
    assert isinstance(file, GifImageFile)
    return file


def pixels_of(file: GifImageFile, frame: int) -> Image.Image:
    file.seek(frame)
    return file.convert("RGB")


def colours_in(picture: Image.Image, x: int, y: int, cells: int, size: Glyphs) -> set[tuple[int, ...]]:
    """Those of the pixels of a cell, or of two for a wide character."""
    left, top = x * size.width, y * size.height
    found = picture.crop((left, top, left + cells * size.width, top + size.height)).getcolors()
    assert found is not None
    return {colour for _, colour in found if isinstance(colour, tuple)}


def check_shows(picture: Image.Image, screen: Screen) -> None:
    """Every cell has its background or its text's colour, and no colour that is not between these two."""
    size = Glyphs()
    assert picture.size == (len(screen[0]) * size.width, len(screen) * size.height)
    for y, row in enumerate(screen):
        for x, cell in enumerate(row):
            if not cell.text:
                continue
            wide = x + 1 < len(row) and not row[x + 1].text
            background, text = pair_of(cell.style)
            found = colours_in(picture, x, y, 1 + wide, size)
            if cell.text == " " and not cell.style.underline:
                assert found == {tuple(background)}, (x, y)
            elif cell.text != "█":
                assert tuple(background) in found, (x, y, cell.text)
            if cell.text in BLOCKS or any(cell.text in lines for lines in LINES):
                assert tuple(text) in found, (x, y, cell.text)
            elif cell.text != " ":
                assert found - {tuple(background)}, (x, y, cell.text)
            for colour in found:
                assert all(
                    min(a, b) - 40 <= c <= max(a, b) + 40 for a, b, c in zip(background, text, colour, strict=True)
                )


@pytest.mark.parametrize("name", [GOLDEN[-1].name, "two turns", "hostile"])
def test_each_frame_of_a_gif_has_the_colours_of_the_apps_cells(name: str) -> None:
    frames, _ = filmed(name)
    file = opened(gif(frames, 0.5))  # slow: no frame is left out
    assert file.n_frames == len(frames) > 2
    for number in {0, len(frames) // 2, len(frames) - 1}:
        check_shows(pixels_of(file, number), frames[number].screen)


def test_only_what_changes_is_in_a_frame_and_times_are_those_of_the_session(tmp_path: Path) -> None:
    """A frame that would flash by is left out, and what it changed comes with the next one."""
    plain = Style(color="white", bgcolor="#102030")

    def screen(text: str) -> Screen:
        return (tuple(Cell(letter, plain) for letter in text), tuple(Cell(" ", plain) for _ in text))

    frames = [
        Frame(0.0, screen("a---")),
        Frame(1.0, screen("ab--")),
        Frame(1.004, screen("abc-")),
        Frame(3.0, screen("---d")),
    ]
    file = opened(gif(frames, 2.0))
    delays = []
    for number in range(file.n_frames):
        file.seek(number)
        delays.append(file.info["duration"])
    assert delays == [500, 1000, 10 * LAST_DELAY]
    check_shows(pixels_of(file, 1), screen("abc-"))
    size, again = Glyphs(), opened(gif(frames, 2.0))
    again.seek(1)
    assert again.tile[0].extents == (size.width, 0, 3 * size.width, size.height)  # b and c


cells = st.tuples(st.sampled_from(["a", "b", "漢"]), st.sampled_from([Style(bold=True), Style(color="red")]))


@st.composite
def rows(draw: st.DrawFn) -> tuple[Cell, ...]:
    """Twelve cells, some of them halves of wide characters."""
    row: list[Cell] = []
    while len(row) < 12:
        text, style = draw(cells)
        wide = text == "漢" and len(row) < 11
        row += [Cell(text, style), Cell("", style)] if wide else [Cell("a" if text == "漢" else text, style)]
    return tuple(row)


@pytest.mark.parametrize("seconds", [655.35, 655.36, 1310.7, 2000.0])
def test_a_screen_that_stands_longer_than_a_frame_can_say_stands_as_long(seconds: float) -> None:
    before, after = ((tuple(Cell(letter, Style()) for letter in word),) for word in ("ab", "ac"))
    frames = [Frame(0.0, before), Frame(seconds, after)]
    file = opened(gif(frames, 1.0))
    shown: list[tuple[bytes, int]] = []
    for number in range(file.n_frames):
        pixels = pixels_of(file, number).tobytes()
        stood = shown.pop()[1] if shown and shown[-1][0] == pixels else 0
        shown.append((pixels, stood + file.info["duration"]))
    assert [duration for _, duration in shown] == [round(1000 * seconds), 10 * LAST_DELAY]


@given(before=rows(), after=rows(), gap=st.integers(0, 3))
def test_what_has_changed_makes_the_one_screen_of_the_other(
    before: tuple[Cell, ...], after: tuple[Cell, ...], gap: int
) -> None:
    row = list(before)
    for x, y, changed in changes((before,), (after,), gap):
        assert y == 0 and changed[0].text  # it begins with no right half
        row[x : x + len(changed)] = changed
    assert tuple(row) == after
    assert list(changes((after,), (after,), gap)) == []


def test_lines_and_blocks_reach_the_edges_of_their_cells_so_that_they_join() -> None:
    glyph = Glyphs()
    for character, edges in zip("─━│└┼╯█▄", ("lr", "lr", "tb", "tr", "lrtb", "tl", "lrtb", "lrb"), strict=True):
        mask = glyph.mask(character, False, False)
        width, height = mask.size
        left, right = (0, 0, 1, height), (width - 1, 0, width, height)
        top, bottom = (0, 0, width, 1), (0, height - 1, width, height)
        sides = {"l": left, "r": right, "t": top, "b": bottom}
        reached = {side for side, box in sides.items() if mask.crop(box).getbbox()}
        assert reached == set(edges), character


def test_without_pillow_or_a_font_a_sentence_says_what_to_install_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.export.film.shoot", lambda *_: pytest.fail("it has been drawn"))
    monkeypatch.setattr(glyphs, "FONTS", (("no such font.ttf", "nor this.ttf"),))
    check_refused(export(GOLDEN[-1], tmp_path / "talk.gif"), "install DejaVu Sans Mono")
    for module in ("PIL", "ladechat.export.gif", "ladechat.export.glyphs"):
        monkeypatch.setitem(sys.modules, module, None)
    check_refused(export(GOLDEN[-1], tmp_path / "talk.gif"), "-m pip install 'pillow")
    assert not (tmp_path / "talk.gif").exists()


def test_a_palette_without_room_for_every_shade_keeps_the_colours_themselves() -> None:
    styles = [Style(color=f"#{level:02x}40ff", bgcolor=f"#0040{level:02x}") for level in range(0, 250, 5)]
    screen = (tuple(Cell("█" if place % 2 else "a", style) for place, style in enumerate(styles)),)
    file = opened(gif([Frame(0.0, screen)], 1.0))
    picture = pixels_of(file, 0)
    size = Glyphs()
    for x, cell in enumerate(screen[0]):
        background, text = pair_of(cell.style)
        wanted: ColorTriplet = text if cell.text == "█" else background
        assert picture.getpixel((x * size.width, 0)) == tuple(wanted)
