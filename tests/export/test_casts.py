"""A cast shows what the replay shows: each of its frames, played in a terminal, is the app's own screen."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyte
import pytest
from rich.style import Style

from ladechat.app import LadechatApp
from ladechat.export import cells
from ladechat.export.cast import cast
from ladechat.export.film import Frame, Reel, full_colour, moments, shoot
from ladechat.palette import HUES
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.key_footer import KeyFooter
from tests.export.films import RECORDINGS, SIZE, ShownCell, ShownScreen, filmed, screen_of
from tests.export.talks import two_turns
from tests.waiting import until


def terminal_shows(terminal: pyte.Screen) -> ShownScreen:
    def named(colour: str) -> str | None:
        return None if colour == "default" else colour

    return [
        [
            ShownCell(cell.data, named(cell.fg), named(cell.bg), cell.bold, cell.underscore)
            for cell in (terminal.buffer[y][x] for x in range(terminal.columns))
        ]
        for y in range(terminal.lines)
    ]


def lines_of(text: str) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    header, *events = map(json.loads, text.splitlines())
    return header, [(seconds, code, data) for seconds, code, data in events]


def letter(seconds: float, text: str) -> Frame:
    """A frame of a single cell."""
    return Frame(seconds, ((cells.Cell(text, Style()),),))


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_frame_of_a_cast_shows_the_screen_of_the_app(name: str) -> None:
    frames, screens = filmed(name)
    header, events = lines_of(cast(Reel(frames, SIZE, "", []), speed=1.0, version=3))
    assert (header["version"], header["term"]["cols"], header["term"]["rows"]) == (3, *SIZE)
    terminal = pyte.Screen(*SIZE)
    stream = pyte.Stream(terminal)
    outputs = [data for _, code, data in events if code == "o"]
    assert len(outputs) == len(screens) + 1 > 3  # the last one only gives the cursor back
    for output, screen in zip(outputs, screens, strict=False):
        stream.feed(output)
        assert terminal_shows(terminal) == screen
    coloured = {cell.colour for row in screens[-1] for cell in row}
    assert coloured & {hue.removeprefix("#") for hue in HUES[True]}


def test_the_first_frame_begins_and_the_last_one_shows_the_whole_recording() -> None:
    _, screens = filmed("two turns")
    first, last = ("\n".join("".join(cell.text for cell in row) for row in screens[at]) for at in (0, -1))
    assert "Again?" not in first and "pass 0 of 18" in first
    assert "Again?" in last and "pass 18 of 18" in last
    assert "Leave" not in last  # a key of the footer: nobody can press it


@pytest.mark.full
async def test_a_film_ends_with_what_a_replay_shows_in_the_end_but_for_its_keys(tmp_path: Path) -> None:
    recording = two_turns(tmp_path)
    _, screens = await asyncio.to_thread(filmed, "two turns")
    replay = ReplayScreen(recording)
    with full_colour():
        app = LadechatApp(replay)
        async with app.run_test(size=SIZE, notifications=False) as pilot:
            replay.query_one(KeyFooter).display = False
            replay.go(len(recording.events))
            await until(lambda: screen_of(app) == screens[-1], pilot)


def test_version_3_has_times_since_the_event_before_and_version_2_since_the_beginning() -> None:
    frames = [letter(0.0, "a"), letter(1.0004, "b"), letter(2.0012, "c"), letter(9.5, "d")]
    _, relative = lines_of(cast(Reel(frames, SIZE, "", []), speed=1.0, version=3))
    header, absolute = lines_of(cast(Reel(frames, SIZE, "", []), speed=1.0, version=2))
    assert (header["version"], header["width"], header["height"]) == (2, *SIZE)
    assert relative.pop() == (0.0, "x", "0")
    assert [event[1:] for event in relative] == [event[1:] for event in absolute]
    assert list(accumulate(event[0] for event in relative)) == pytest.approx([event[0] for event in absolute])
    assert absolute[-1][0] == 9.5
    _, twice = lines_of(cast(Reel(frames, SIZE, "", []), speed=2.0, version=2))
    assert twice[-1][0] == 9.5 / 2, "twice the speed takes half the time"


@pytest.mark.full
def test_questions_and_what_was_wrong_with_the_file_are_markers(tmp_path: Path) -> None:
    recording = two_turns(tmp_path)
    _, events = lines_of(cast(shoot(recording, SIZE), speed=1.0, version=2))
    markers = [(seconds, data) for seconds, code, data in events if code == "m"]
    assert [data for _, data in markers] == [*recording.notices, "漢字 and Ünï?", "Again?"]
    assert [seconds for seconds, _ in markers[1:]] == [recording.times[turn.position] for turn in recording.turns]


def test_a_frame_is_drawn_after_each_event_and_no_oftener_than_the_app_does() -> None:
    times = [0.0, 0.01, 0.011, 0.05, 5.0]
    drawn = list(moments(times))
    assert all(any(seconds <= moment < seconds + 1 / 15 for moment in drawn) for seconds in times)
    assert min(b - a for a, b in pairwise(drawn)) > 0.066


def test_colours_do_not_depend_on_the_terminal_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NO_COLOR": "1", "TERM": "dumb", "TEXTUAL_COLOR_SYSTEM": "standard"}.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    recording = Recording.read(two_turns(tmp_path).path, 0.0)
    output = cast(shoot(recording, (60, 16)), speed=1.0, version=2)
    red, green, blue = (int(HUES[True][2][at : at + 2], 16) for at in (1, 3, 5))
    assert f"38;2;{red};{green};{blue}" in output
    assert dict(os.environ) == before


def test_ctrl_c_ends_a_film_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def moments_until_ctrl_c(times: list[float]) -> Iterator[float]:
        yield 0.0
        signal.raise_signal(signal.SIGINT)
        yield 0.1
        raise AssertionError("it went on")

    monkeypatch.setattr("ladechat.export.film.moments", moments_until_ctrl_c)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        shoot(two_turns(tmp_path), SIZE)
    assert signal.getsignal(signal.SIGINT) == before
