"""Recording from within the app: F7, a disk that refuses, and the end of the app."""

from pathlib import Path

import pytest

from ladechat.protocol import Step, TurnFinished
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from tests.app.stage import Stage, ask, begun
from tests.fake_engine import FakeEngine
from tests.waiting import press, until


async def test_f7_begins_and_ends_a_recording_and_a_mark_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.chat.recordings.default_path", lambda _: tmp_path / "talk.jsonl")
    async with Stage(FakeEngine(answers=("An answer.",))).running() as (pilot, stage):
        mark = stage.app.query_one("#recording")
        await until(lambda: stage.activity == "ready", pilot)
        shown = [mark.display]
        await pilot.press("f7")
        shown.append(mark.display)
        assert "talk.jsonl" in stage.notice
        await ask(pilot, "One?", brings=lambda: not stage.asking and "An answer." in stage.text)
        await pilot.press("f7")
        shown.append(mark.display)
    assert shown == [False, True, False]
    recording = Recording.read(tmp_path / "talk.jsonl")
    assert recording.closed and recording.notices == []
    finished = [event for event in recording.events if isinstance(event, TurnFinished)]
    assert [event.text for event in finished] == ["An answer."]


async def test_a_recording_that_cannot_be_written_is_told_of_and_the_conversation_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.chat.recordings.default_path", lambda _: tmp_path)
    async with Stage(FakeEngine(answers=("An answer.",))).ready() as (pilot, stage):
        await press(pilot, "f7", brings=lambda: f"{tmp_path} cannot be written" in stage.notice)
        assert not stage.app.query_one("#recording").display
        await ask(pilot, "One?", brings=lambda: not stage.asking and "An answer." in stage.text)


async def test_leaving_ends_the_recording_in_order(tmp_path: Path) -> None:
    stage = Stage(FakeEngine(hold_steps=True), recorder=Recorder())
    stage.recorder.start(tmp_path / "talk.jsonl")
    async with stage.app.run_test() as pilot:
        await begun(pilot, stage, 2)
        await pilot.press("ctrl+q")
    recording = Recording.read(tmp_path / "talk.jsonl")
    assert recording.closed
    assert sum(isinstance(event, Step) for event in recording.events) == 2
