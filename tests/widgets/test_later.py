"""Claims about calls after a while: they come, also where the machine pauses at the wrong moment."""

import itertools
import time

import pytest

from ladechat.widgets.later import Frames, call_later
from ladechat.widgets.panels.panel import Panel, Row
from tests.waiting import act, brings
from tests.widgets.hosting import Host, drawn, hosted


class Counter(Panel):
    """Shows how often it was told to draw."""

    told = 0

    def tell(self) -> None:
        self.told += 1
        self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        return [[(str(self.told), self.title_style)]]


async def test_a_panel_draws_what_it_was_told_last(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosted(Counter()) as (pilot, panel):
        # A second passes between any two of the next looks that a timer of Textual takes at the clock.
        pauses = itertools.chain(range(10), itertools.repeat(10))
        monkeypatch.setattr("textual._time.get_time", lambda: time.monotonic() + next(pauses))
        for _ in range(3):
            panel.tell()
        assert (await drawn(pilot, panel))[0] == "3"


async def test_a_call_can_be_called_off() -> None:
    panel = Counter()
    came: list[str] = []
    async with Host(panel).run_test() as pilot:
        async with brings(lambda: bool(came), pilot):
            call_later(panel, 0.01, lambda: came.append("called off")).cancel()
            call_later(panel, 0.02, lambda: came.append("kept"))
        assert came == ["kept"]


async def test_a_frame_is_drawn_at_once_after_a_pause_and_the_next_ones_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ladechat.widgets.later.SECONDS_BETWEEN_FRAMES", 1000)
    panel, told, drawn = Counter(), [0], []
    frames = Frames(panel, lambda: drawn.append(told[0]))

    def tell() -> None:
        told[0] += 1
        frames.due()

    async with Host(panel).run_test() as pilot:
        await act(pilot, tell, brings=lambda: drawn == [1])
        monkeypatch.setattr("ladechat.widgets.later.SECONDS_BETWEEN_FRAMES", 0.2)
        async with brings(lambda: drawn == [1, 3], pilot):
            tell()
            tell()
        async with brings(lambda: drawn == [1, 3, 4], pilot):
            frames.due(1000)
            tell()
