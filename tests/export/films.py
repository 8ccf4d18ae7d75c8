"""Films that several tests look at, each drawn once: its frames, and the app's own screen at each of them."""

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.export.film import Frame, ReplayFilm, full_colour
from ladechat.session.recordings.recording import Recording
from tests.export.talks import hostile, two_turns
from tests.session.streams import GOLDEN

SIZE = (100, 30)


class ShownCell(NamedTuple):
    """What a terminal shows in one cell, and how."""

    text: str
    colour: str | None
    background: str | None
    bold: bool
    underlined: bool


ShownScreen = list[list[ShownCell]]

RECORDINGS: dict[str, Callable[[Path], Recording]] = {
    **{path.name: lambda _, path=path: Recording.read(path, 1.0) for path in (GOLDEN[1], GOLDEN[-1])},  # type: ignore[misc]
    "two turns": two_turns,
    "hostile": hostile,
}


def screen_of(app: LadechatApp) -> ShownScreen:
    """The app's own screen, cell by cell."""
    screen: ShownScreen = []
    for strip in app.screen._compositor.render_strips():
        row: list[ShownCell] = []
        for text, style, _ in strip:
            style = style or Style()
            look = (
                _hexadecimal(style, "color"),
                _hexadecimal(style, "bgcolor"),
                bool(style.bold),
                bool(style.underline),
            )
            for character in text:
                row += [ShownCell(character, *look), *[ShownCell("", *look)] * (cell_len(character) - 1)]
        screen.append(row)
    return screen


def _hexadecimal(style: Style, which: str) -> str | None:
    colour = getattr(style, which)
    return None if colour is None or colour.triplet is None else colour.triplet.hex.removeprefix("#")


@cache
def filmed(name: str) -> tuple[list[Frame], list[ShownScreen]]:
    """The frames of one of the recordings, and the app's screen at each."""
    frames: list[Frame] = []
    screens: list[ShownScreen] = []

    async def work(pilot: Pilot[object]) -> None:
        async for frame in film.frames(pilot):
            frames.append(frame)
            screens.append(screen_of(film.app))

    with TemporaryDirectory() as folder, full_colour():
        film = ReplayFilm(RECORDINGS[name](Path(folder)), SIZE)
        asyncio.run(film.run(work))
    return frames, screens
