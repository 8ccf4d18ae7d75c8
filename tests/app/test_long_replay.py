"""A recording is on the screen, and can be played, before all of it is read; what leads further waits."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ladechat.app import LadechatApp
from ladechat.protocol import Asked, Closed, Step, encode
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings import reading
from ladechat.session.recordings.reading import Lines
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.seek_bar import Transport
from tests.app.stage import notices_of
from tests.session.streams import stream, turn, write
from tests.waiting import act, brings, press, until

TURNS = 6
ASKED = [Asked(turn=number, text=f"Question {number}?") for number in range(1, TURNS + 1)]
EVENTS = stream(*(event for asked in ASKED for event in (asked, *turn(asked.turn))), Closed())


class HeldBack(Recording):
    """A recording on a disk that gives no more than its beginning, until the gate is open."""

    def __init__(self, path: Path) -> None:
        self.gate = threading.Event()
        self.gate.set()
        super().__init__(path)
        self.gate.clear()
        self.error: OSError | None = None

    def fetch(self) -> Lines:
        self.gate.wait()
        if len(self.events) and self.error is not None:
            raise self.error
        return super().fetch()


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeldBack:
    """Two questions of six are there, and the answer to the first one."""
    second = EVENTS.index(next(event for event in EVENTS if isinstance(event, Asked) and event.turn == 2))
    lines = [encode(event) for event in EVENTS]
    lines[second + 3] = b"{\n"
    monkeypatch.setattr(reading, "PART_BYTES", sum(map(len, lines[: second + 1])))
    return HeldBack(write(tmp_path / "talk.jsonl", *lines))


class Room:
    """A replay of it."""

    def __init__(self, recording: HeldBack) -> None:
        self.recording = recording
        self.screen = ReplayScreen(recording)
        self.app = LadechatApp(self.screen)
        self.notices = notices_of(self.app)

    @property
    def shown(self) -> str:
        transport = self.screen.query_one(Transport)
        return " · ".join((transport.state, *transport.facts))

    @property
    def position(self) -> int:
        return self.screen.player.position

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[Pilot[int], Self]]:
        try:
            async with self.app.run_test() as pilot:
                yield pilot, self
        finally:
            self.recording.gate.set()  # the thread that waits for it would hold up the end of the test

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[tuple[Pilot[int], Self]]:
        """Run it, paused at the beginning."""
        async with self.running() as (pilot, _):
            await press(pilot, "space", brings=lambda: not self.screen.player.playing)
            self.screen.go(0)
            yield pilot, self


async def test_the_beginning_is_shown_and_stepped_through_while_the_rest_is_held_back(held: HeldBack) -> None:
    async with Room(held).paused() as (pilot, room):
        for number in (1, 2, 3):
            async with brings(lambda number=number: f"pass {number} of 3+" in room.shown, pilot):  # type: ignore[misc]
                await pilot.press("right")
        assert room.screen.query_one(Transport).known == held.share < 1
        await press(pilot, "n", brings=lambda: "question 2 of 2+" in room.shown)
        await act(pilot, held.gate.set, brings=lambda: held.complete)
        await until(lambda: f"question 2 of {TURNS}" in room.shown, pilot)
        assert "+" not in room.shown and room.screen.query_one(Transport).known == 1
        assert [event.text for event in held.events if isinstance(event, Asked)] == [one.text for one in ASKED]
        assert any("line" in notice and "cannot be read" in notice for notice in room.notices)


WAITS: dict[str, tuple[Callable[[Room, Pilot[int]], object], Callable[[Room], bool]]] = {
    "the end": (lambda _, pilot: pilot.press("end"), lambda room: room.position == len(room.recording.events)),
    "a place that was clicked": (
        lambda room, pilot: room.screen.query_one(Transport).post_message(
            Transport.Sought(room.screen.query_one(Transport), 0.9)
        ),
        lambda room: abs(room.position / len(room.recording.events) - 0.9) < 0.05,
    ),
    "a text": (
        lambda room, _: room.screen.query_one("#find", Input).post_message(
            Input.Submitted(room.screen.query_one("#find", Input), "question 5")
        ),
        lambda room: [turn.position + 1 for turn in room.recording.turns][4:5] == [room.position],
    ),
}


@pytest.mark.parametrize("place", WAITS)
async def test_what_leads_to_a_place_that_is_not_read_waits_for_it_and_says_so(held: HeldBack, place: str) -> None:
    lead, there = WAITS[place]
    async with Room(held).paused() as (pilot, room):
        async with brings(lambda: "reading" in room.shown, pilot):
            result = lead(room, pilot)
            if hasattr(result, "__await__"):
                await result
        assert room.position == 0
        await act(pilot, held.gate.set, brings=lambda: there(room))
        await until(lambda: "reading" not in room.shown, pilot)


async def test_another_key_takes_the_place_of_what_waits(held: HeldBack) -> None:
    async with Room(held).paused() as (pilot, room):
        await press(pilot, "end", brings=lambda: "reading" in room.shown)
        await press(pilot, "right", brings=lambda: "pass 1 of" in room.shown)
        await act(pilot, held.gate.set, brings=lambda: held.complete)
        await until(lambda: "+" not in room.shown, pilot)
        assert "pass 1 of" in room.shown and isinstance(held.events[room.position - 1], Step)


async def test_playing_waits_where_reading_is_and_goes_on(held: HeldBack) -> None:
    held.times[:] = [0.0] * len(held.times)
    async with Room(held).running() as (pilot, room):
        await until(lambda: room.position == len(held.events), pilot)
        assert room.screen.player.playing and "▶" in room.shown
        for _ in range(4):
            await pilot.press("plus")
        await act(pilot, held.gate.set, brings=lambda: room.screen.player.at_end)


async def test_leaving_does_not_wait_for_the_rest(held: HeldBack) -> None:
    async with Room(held).paused() as (pilot, room):
        await pilot.press("q")
    assert room.app.return_code == 0 and not held.complete


async def test_a_disk_that_fails_is_told_and_what_was_read_stays(held: HeldBack) -> None:
    async with Room(held).paused() as (pilot, room):
        held.error = OSError(5, "Input/output error")
        async with brings(lambda: any("cannot be read: Input/output" in notice for notice in room.notices), pilot):
            held.gate.set()
        await press(pilot, "end", brings=lambda: room.position == len(held.events))
