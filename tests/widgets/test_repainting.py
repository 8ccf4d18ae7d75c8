"""What a terminal shows of a conversation after any changes: the same as if all of it were drawn anew."""

import asyncio
from collections.abc import Sequence

import pyte
import pytest
from hypothesis import given, settings, strategies as st
from textual.pilot import Pilot

from ladechat.widgets.transcript.transcript import FORMATTING_SECONDS, Transcript
from tests.widgets.hosting import Host
from tests.widgets.sample_steps import TEXT, step

Operation = tuple[str, int]
Cells = list[list[pyte.screens.Char]]

WIDTHS = (30, 44, 60)
ROWS = 9
KINDS = (*("ask", "steps", "notice", "clear", "keep", "scroll") * 3, "format", "mark", "unmark", "resize")
NEXT_SCENE = [("ask", 0), ("steps", 3), ("notice", 1), ("clear", 0), ("ask", 6), ("steps", 1), ("notice", 2)]


class Terminal(Host):
    """A conversation on a terminal of its own, which gets what a real one would get."""

    def __init__(self) -> None:
        super().__init__(Transcript())
        self.widget.styles.width = self.widget.styles.height = "100%"
        self.screen_of_terminal = pyte.Screen(WIDTHS[1], ROWS)
        self.written = ""
        self._steps = 0

    @property
    def is_headless(self) -> bool:
        """A terminal is written to."""
        return False

    async def connect(self, pilot: Pilot[None]) -> None:
        """Write to the terminal from now on."""
        assert self._driver is not None
        self._driver.write = self._write  # type: ignore[method-assign]
        await self.drawn_anew(pilot)

    def _write(self, data: str) -> None:
        self.written += data
        pyte.Stream(self.screen_of_terminal).feed(data)

    async def do(self, pilot: Pilot[None], name: str, number: int) -> None:
        """One change of the conversation, or of how it is seen."""
        transcript = self.widget
        assert isinstance(transcript, Transcript)
        match name:
            case "ask":
                transcript.start("user", "You")
                transcript.add(f"Question {number}? " * (number + 1))
            case "steps":
                for _ in range(number):
                    first = self._steps % (len(TEXT) - 3)
                    transcript.add_steps([step(TEXT[first : first + 3], index=self._steps)])
                    self._steps += 1
            case "notice":
                transcript.notice(f"{number} tokens. " * (number + 1))
            case "clear":
                transcript.keep(0)
            case "keep":
                transcript.keep(min(number, transcript.blocks))
            case "scroll":
                transcript.scroll_to(y=number, animate=False)
            case "format":
                transcript.formatted = not transcript.formatted
            case "mark":
                transcript.mark(1, number)
            case "unmark":
                transcript.unmark()
            case "resize":
                width = WIDTHS[number % len(WIDTHS)]
                self.screen_of_terminal.resize(ROWS, width)
                await pilot.resize_terminal(width, ROWS)
        await pilot.pause()

    def shown(self) -> Cells:
        """The characters and colours in each cell of the terminal."""
        screen = self.screen_of_terminal
        return [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]

    async def drawn_anew(self, pilot: Pilot[None]) -> Cells:
        """The cells after a full redraw, without anything cached."""
        self.widget.notify_style_update()
        self.widget.refresh()
        self.screen_of_terminal.reset()
        self.screen.refresh(layout=True)
        await pilot.pause()
        return self.shown()


async def go_through(operations: Sequence[Operation]) -> None:
    terminal = Terminal()
    async with terminal.run_test(size=(WIDTHS[1], ROWS)) as pilot:
        await terminal.connect(pilot)
        for name, number in operations:
            await terminal.do(pilot, name, number)
        assert isinstance(terminal.widget, Transcript)
        if terminal.widget.formatted:  # an answer that came just now is formatted a little later
            await pilot.pause(2 * FORMATTING_SECONDS)
        shown = terminal.shown()
        assert shown == await terminal.drawn_anew(pilot)


async def test_nothing_of_a_conversation_that_was_cleared_stays_on_the_terminal() -> None:
    await go_through(NEXT_SCENE)


async def test_a_line_is_written_once_when_it_scrolls_and_not_at_all_when_only_others_change() -> None:
    terminal = Terminal()
    async with terminal.run_test(size=(WIDTHS[1], ROWS)) as pilot:
        await terminal.connect(pilot)
        transcript = terminal.widget
        assert isinstance(transcript, Transcript)
        transcript.start("model")
        transcript.add("line of text\n" * ROWS + "lighthouse\nand")
        await pilot.pause()
        terminal.written = ""
        transcript.add(" more")
        await pilot.pause()
        assert "and more" in terminal.written and "lighthouse" not in terminal.written
        terminal.written = ""
        transcript.add("\nthe next line")
        await pilot.pause()
        assert terminal.written.count("lighthouse") == terminal.written.count("the next line") == 1
        assert terminal.shown() == await terminal.drawn_anew(pilot)


async def test_the_end_is_followed_again_from_the_key_on_that_goes_there_while_a_step_is_marked() -> None:
    terminal = Terminal()
    async with terminal.run_test(size=(WIDTHS[1], ROWS)) as pilot:
        for _ in range(3):
            await terminal.do(pilot, "steps", 12)
        transcript = terminal.widget
        assert isinstance(transcript, Transcript)
        transcript.mark(1, 2)
        await pilot.pause()
        await terminal.do(pilot, "steps", 12)
        assert not transcript.follows_end
        transcript.action_scroll_to_end()
        await terminal.do(pilot, "steps", 6)
        assert transcript.scroll_offset.y == transcript.max_scroll_y


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 12)), min_size=6, max_size=20))
def test_after_any_changes_the_terminal_shows_what_a_full_redraw_shows(operations: list[Operation]) -> None:
    asyncio.run(go_through(operations))
