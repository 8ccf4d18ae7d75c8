"""What the tests of the widgets share: a small app around one widget, and ways to read it and to wait for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from ladechat.protocol import Step
from ladechat.widgets.panels.panel import AnswerPanel, Panel
from tests.waiting import until

Hosted = TypeVar("Hosted", bound=Widget)
Steps = TypeVar("Steps", bound=AnswerPanel)


class Host(App[None]):
    """One widget, as wide and as high as asked for, with the app's scroll bars."""

    CSS = "Widget { scrollbar-size-vertical: 1; }"

    def __init__(self, widget: Widget, width: int = 60, height: int = 12) -> None:
        super().__init__()
        self.widget = widget
        widget.styles.width = width
        widget.styles.height = height

    def compose(self) -> ComposeResult:
        yield self.widget


@asynccontextmanager
async def hosted(widget: Hosted, width: int = 60, height: int = 12) -> AsyncIterator[tuple[Pilot[None], Hosted]]:
    """Run an app around one widget, as wide and as high as asked for."""
    async with Host(widget, width, height).run_test() as pilot:
        yield pilot, widget


async def move_mouse(pilot: Pilot[None], x: int, y: int, button: int = 1) -> None:
    """Move the mouse as a terminal reports it, with or without a button held."""
    pilot.app.screen._forward_event(
        events.MouseMove(None, x, y, 0, 0, button, False, False, False, screen_x=x, screen_y=y)
    )
    await pilot.pause()


def showing(panel: Steps, *steps: Step) -> Steps:
    """Return a panel that was shown these steps."""
    for step in steps:
        panel.show_step(step)
    return panel


def lines(widget: Widget) -> list[str]:
    """What the widget shows, line by line; each as wide as the widget, measured in cells."""
    width, height = widget.content_size
    strips = widget.render_lines(widget.size.region)
    assert len(strips) == height
    texts = [strip.text for strip in strips]
    assert [cell_len(text) for text in texts] == [width] * height
    return [text.rstrip() for text in texts]


def style_of(widget: Widget, text: str, line: int | None = None) -> Style:
    """The style of the first piece of the screen, in one line or in any, that is this text."""
    strips = widget.render_lines(widget.size.region)
    for strip in strips if line is None else [strips[line]]:
        for segment in strip:
            if segment.text.strip() == text:
                return segment.style or Style()
    raise AssertionError(f"{text!r} is not shown: {[strip.text for strip in strips]}")


async def drawn(pilot: Pilot[None], panel: Panel) -> list[str]:
    """What a panel shows once it has drawn all it was told."""
    await until(lambda: not panel.drawing.waits, pilot)
    return lines(panel)
