"""Whatever is in the file of a recording: it is refused in a sentence, or played, and steers no terminal.

A run that fails names its seed: `mutated(…, seed)` makes the same file again.
"""

import re
from pathlib import Path
from random import Random

import pytest
from textual.app import App

from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings.reading import UnreadableRecording
from ladechat.session.recordings.recording import Recording
from tests.app.stage import replaying
from tests.session.mutations import mutated
from tests.session.streams import GOLDEN

RAW_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HUNG_SECONDS = 10


def read(folder: Path, seed: int) -> Recording | None:
    """The mutated recording; None where it is refused in a sentence."""
    path = folder / f"mutated-{seed}.jsonl"
    path.write_bytes(mutated(GOLDEN[seed % len(GOLDEN)].read_bytes(), seed))
    try:
        return Recording.read(path)
    except UnreadableRecording as refused:
        sentence = str(refused)
    assert str(path) in sentence or "header" in sentence
    assert "\n" not in sentence
    return None


def check_screen(app: App[int], seed: int) -> None:
    """Nothing on the screen would steer a terminal."""
    shown = [segment.text for strip in app.screen._compositor.render_strips() for segment in strip]
    assert not RAW_CONTROLS.search("".join(shown)), seed


async def play(folder: Path, seeds: range, size: tuple[int, int]) -> int:
    """Draw each of them, or a part of it, as a replay does, on one screen; how many could be read."""
    played = 0
    random = Random(seeds.start)
    first = Recording.read(GOLDEN[-1])
    async with replaying(first, size=size, playing=True) as (pilot, app, _):
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, ReplayScreen)
        screen.player.playing = False
        for seed in seeds:
            recording = read(folder, seed)
            if recording is None:
                continue
            played += 1
            try:
                presenter = screen.view.presenter
                presenter.begin(recording.header.settings)
                presenter.show(random.choice((recording.events, recording.events[: random.randint(1, 40)])))
                await pilot.pause()
                check_screen(app, seed)
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error
    return played


async def replay(folder: Path, seed: int) -> None:
    """Open one in a replay of its own, and go through it with its keys."""
    recording = read(folder, seed)
    if recording is None:
        return
    async with replaying(recording, size=(100, 40), playing=True) as (pilot, app, _):
        await pilot.press("space", "n", "n", "left", "p", "right", "end")
        check_screen(app, seed)
        await pilot.press("home", "end", "plus", "space", "left", "left")
        check_screen(app, seed)
    assert app.return_code in (0, None)


@pytest.mark.timeout(60 * HUNG_SECONDS)
async def test_20_mutated_recordings_are_refused_or_played(tmp_path: Path) -> None:
    assert await play(tmp_path, range(20), (100, 40)) > 10


@pytest.mark.timeout(HUNG_SECONDS * 6)
@pytest.mark.parametrize("seed", range(1001, 1003))
async def test_a_mutated_recording_can_be_walked_through(tmp_path: Path, seed: int) -> None:
    await replay(tmp_path, seed)


@pytest.mark.full
@pytest.mark.parametrize("size", [(60, 16), (80, 24), (100, 40), (180, 60)], ids=str)
async def test_2400_mutated_recordings_are_refused_or_played(tmp_path: Path, size: tuple[int, int]) -> None:
    first = 10_000 + 600 * size[0]
    assert await play(tmp_path, range(first, first + 600), size) > 300


@pytest.mark.full
@pytest.mark.parametrize("seed", [1000, *range(1003, 1060)])
async def test_many_mutated_recordings_can_be_walked_through(tmp_path: Path, seed: int) -> None:
    await replay(tmp_path, seed)
