"""Searching a recording: where a text was written, in order, and then from the beginning."""

from pathlib import Path

import pytest
from textual.widgets import Input

from ladechat.protocol import Asked, Step
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.playing import Player
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.seek_bar import Transport
from ladechat.widgets.bars.status_line import StatusLine
from tests.app.stage import replaying
from tests.session.streams import recorded, turn
from tests.waiting import brings, press, until


def recording_of(tmp_path: Path) -> Recording:
    events = [event for number in (1, 2) for event in (Asked(turn=number, text=f"Why {number}?"), *turn(number))]
    return Recording.read(recorded(tmp_path, *events))


def test_every_text_of_an_answer_is_found_at_the_step_that_ends_it(tmp_path: Path) -> None:
    recording = recording_of(tmp_path)
    start = next(place for place, event in enumerate(recording.events) if isinstance(event, Step))
    written = ""
    for place, event in enumerate(recording.events[start:], start=start):
        if not isinstance(event, Step):
            break
        written += "".join(event.pieces)
        assert Player(recording).found(written.upper()) == place + 1
    assert len(written) > 3


def test_places_come_in_order_and_then_from_the_beginning(tmp_path: Path) -> None:
    player = Player(recording_of(tmp_path))
    asked = [turn.position + 1 for turn in player.recording.turns]
    for place in (*asked, asked[0]):
        found = player.found("why")
        assert found == place
        player.seek(found)


@pytest.mark.parametrize("text", ["", "?Why", "nowhere to be found"])
def test_what_is_nowhere_is_not_found(tmp_path: Path, text: str) -> None:
    assert Player(recording_of(tmp_path)).found(text) is None


@pytest.mark.full
async def test_a_slash_asks_enter_goes_there_and_escape_gives_the_keys_back(tmp_path: Path) -> None:
    async with replaying(recording_of(tmp_path), playing=True) as (pilot, _, screen):
        await pilot.press("home", "slash")
        line = screen.query_one("#find", Input)
        assert line.region.height == 1
        assert line.has_focus
        assert footer(screen) == ["Next place", "Close", "Panels"]
        async with brings(lambda: screen.player.position == screen.recording.turns[1].position + 1, pilot):
            await pilot.press(*"why", "space", *"2", "enter")
        assert not screen.player.playing
        await until(lambda: "searching · paused" in status(screen), pilot)
        await pilot.press("x", "enter")
        assert screen.player.position == screen.recording.turns[1].position + 1
        await press(pilot, "escape", brings=lambda: not line.has_class("-open"))
        assert screen.query_one(Transport).has_focus
        assert {"Go on", "Leave"} < set(footer(screen))
        await until(lambda: "searching" not in status(screen), pilot)
        await press(pilot, "home", brings=lambda: "the beginning of the recording · paused" in status(screen))


def footer(screen: ReplayScreen) -> list[str]:
    """What the keys in the footer do."""
    shown = [active.binding for active in screen.active_bindings.values() if active.binding.show]
    return [binding.description for binding in shown if not binding.system]


def status(screen: ReplayScreen) -> str:
    return screen.query_one(StatusLine).render_line(0).text
