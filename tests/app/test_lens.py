"""Pseudo states in the app: asked for while their panel is on the screen, recorded, and shown again by a replay."""

from pathlib import Path

from ladechat.protocol import Configure, Step, Watch
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.window_panel import WindowPanel
from tests.app.stage import Stage, answered, replaying
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until
from tests.widgets.hosting import lines


def told(stage: Stage) -> list[bool]:
    """What the engine was told about eyes, in order."""
    return [command.lens for command in stage.engine.commands if isinstance(command, Watch)]


async def test_an_engine_is_told_when_the_panel_comes_and_goes() -> None:
    async with Stage(decoder="hidden_transfer").ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: told(stage) == [True], pilot)
        assert not stage.app.query_one(WindowPanel).display
        await press(pilot, "f2", brings=lambda: told(stage) == [True, False])
        await press(pilot, "f2", brings=lambda: told(stage) == [True, False, True])
        async with brings(lambda: told(stage) == [True, False, True, False], pilot):
            await pilot.press("f3")  # plain decoding has none
        await press(pilot, "f3", brings=lambda: told(stage)[-1] and len(told(stage)) == 5)


async def test_with_other_decoders_an_engine_is_told_nothing() -> None:
    async with Stage(decoder="lookahead").ready(size=(120, 40)) as (pilot, stage):
        await answered(pilot, stage, "Hello!")
        side = stage.app.query_one(SidePanels)
        for displayed in (False, True):
            await press(pilot, "f2", brings=lambda: side.display is displayed)
        assert not told(stage)
        assert not stage.app.query_one(LensPanel).display


async def test_on_a_screen_without_room_for_panels_nothing_is_asked_for() -> None:
    async with Stage(decoder="hidden_transfer").ready(size=(50, 16)) as (pilot, stage):
        await answered(pilot, stage, "Hello!")
        assert told(stage) in ([], [True, False]), "at most for the first frame, before the size is known"


async def test_a_new_engine_is_told_too() -> None:
    async with Stage(FakeEngine(), FakeEngine(), decoder="hidden_transfer").ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: told(stage) == [True], pilot)
        await press(pilot, "f5", brings=lambda: len(stage.started) == 2 and told(stage) == [True])
        async with brings(lambda: told(stage) == [True, False], pilot):
            await stage.engine.send(Configure(decoder="suffix"))


async def test_a_replay_shows_what_the_app_showed(tmp_path: Path) -> None:
    recorder = Recorder()
    path = tmp_path / "talk.jsonl"
    recorder.start(path)
    async with Stage(decoder="hidden_transfer", recorder=recorder).ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: told(stage) == [True], pilot)
        await answered(pilot, stage, "Hello!")
        live = stage.app.query_one(LensPanel)
        await until(lambda: not live.drawing.waits, pilot)
        shown = lines(live)
    assert "t+1" in shown[1] and any("│" in line for line in shown)
    recording = Recording.read(path)
    assert not recording.notices
    assert sum(isinstance(event, Step) and event.lens is not None for event in recording.events) > 5
    async with replaying(recording, size=(120, 40), playing=True) as (pilot, app, _):
        await pilot.press("end")
        panel = app.query_one(LensPanel)
        await until(lambda: lines(panel) == shown, pilot)
        await press(pilot, "left", "left", brings=lambda: lines(panel) != shown)
