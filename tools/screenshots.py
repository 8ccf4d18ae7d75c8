"""Takes the picture in docs/: the real app with a real engine and the bundled model, in the middle of an answer.

    python tools/screenshots.py [--svg FOLDER]

Needs the font DejaVu Sans Mono and the cairo library (Debian and Ubuntu: fonts-dejavu-core, libcairo2).
"""

import argparse
import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import cairosvg

from ladechat.app import LadechatApp
from ladechat.catalog import BUNDLED, first_decoder
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Event, Settings, Step
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.view import welcome
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.live import LiveEngine
from ladechat.session.session import Session
from ladechat.widgets.prompt.prompt import Prompt

DOCS = Path(__file__).parent.parent / "docs"
FONT = "DejaVu Sans Mono"
TEXT = re.compile(
    r'<text class="(?P<name>[\w-]+)" x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" textLength="(?P<width>[\d.]+)"[^>]*>'
    r"(?P<content>[^<]+)</text>"
)
BLOCKS = "▁▂▃▄▅▆▇█"
# In the units of Textual's SVG: a line of cells, its baseline below its top, an underline below the baseline.
LINE_HEIGHT, BASELINE = 24.4, 18.5
UNDERLINE_DEPTH, UNDERLINE_HEIGHT = 3.0, 1.5
DEADLINE_SECONDS = 300
SETTLE_SECONDS = 2.0
"""The steps that have come are all on the screen by then."""
COLUMNS, ROWS = 80, 24
NAME = f"screenshot-{COLUMNS}x{ROWS}"
QUESTION = "How does lookahead decoding work?"
AT_STEP = 15
"""The step of the answer before which the picture is taken."""
PIXELS_PER_UNIT = 1.5


class HeldEngine(LiveEngine):
    """A live engine that stands still before one step, for as long as it takes to take a picture."""

    def __init__(self, options: EngineOptions, at_step: int) -> None:
        super().__init__(options.command())
        self._held_at = at_step
        self.held = asyncio.Event()

    async def events(self) -> AsyncIterator[Event]:
        """See `LiveEngine.events`."""
        async for event in super().events():
            if isinstance(event, Step) and event.index == self._held_at:
                self.held.set()
                await asyncio.Event().wait()
            yield event


async def take() -> str:
    """The screen as SVG."""
    os.environ["COLORTERM"] = "truecolor"  # a picture has all colours, whatever terminal it is taken in
    settings = Settings(decoder=first_decoder(BUNDLED).name)
    engine = HeldEngine(EngineOptions(settings=settings), AT_STEP)
    session = Session(lambda _: engine, settings, Conversation())
    app = LadechatApp(ChatScreen(session, BUNDLED, welcome(BUNDLED)), session)
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        app.query_one(Prompt).insert(QUESTION)
        await pilot.press("enter")
        await asyncio.wait_for(engine.held.wait(), DEADLINE_SECONDS)
        await pilot.pause(SETTLE_SECONDS)
        return app.export_screenshot(title="ladechat")


def as_png(svg: str, scale: float) -> bytes:
    """The picture in a font that is installed here: the one the SVG names would come from the network."""
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family:[^;]+;", f"font-family: {FONT};", svg)
    underlined = set(re.findall(r"\.([\w-]+) \{[^}]*text-decoration: underline", svg))
    svg = TEXT.sub(lambda match: _drawn(match, match["name"] in underlined), svg)
    png = cairosvg.svg2png(svg.encode(), scale=scale)
    assert isinstance(png, bytes)
    return png


def _drawn(text: re.Match[str], underlined: bool) -> str:
    """What cairo leaves out of a piece of text: underlines, and the part of a block between two lines."""
    left, baseline, width = (float(text[name]) for name in ("x", "y", "width"))
    rectangle = (
        f'<rect class="{text["name"]}" x="{{}}" y="{{}}" width="{{}}" height="{{}}" shape-rendering="crispEdges"/>'
    )
    if text["content"].strip(BLOCKS):
        line = rectangle.format(left, baseline + UNDERLINE_DEPTH, width, UNDERLINE_HEIGHT) if underlined else ""
        return text[0] + line
    cell = width / len(text["content"])
    heights = [LINE_HEIGHT * (BLOCKS.index(block) + 1) / len(BLOCKS) for block in text["content"]]
    bottom = baseline - BASELINE + LINE_HEIGHT
    return "".join(rectangle.format(left + i * cell, bottom - height, cell, height) for i, height in enumerate(heights))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--svg", type=Path, help="also keep the SVG file, in this folder")
    folder = parser.parse_args().svg
    svg = asyncio.run(take())
    (DOCS / f"{NAME}.png").write_bytes(as_png(svg, PIXELS_PER_UNIT))
    print(f"docs/{NAME}.png")
    if folder:
        (folder / f"{NAME}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
