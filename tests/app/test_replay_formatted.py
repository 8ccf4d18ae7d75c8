"""Going back in a replay whose answers are formatted."""

from pathlib import Path

import pytest

from ladechat.app import LadechatApp
from ladechat.protocol import Asked, encode
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.transcript.transcript import Transcript
from tests.session.streams import stream, turn, write


async def test_going_back_through_formatted_answers_loses_no_earlier_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.widgets.transcript.transcript.FORMATTING_SECONDS", 1000.0)  # as where the key is held
    events = [event for number in (1, 2, 3) for event in (Asked(turn=number, text="Why?"), *turn(number, steps=8))]
    path = write(tmp_path / "talk.jsonl", *map(encode, stream(*events)))
    app = LadechatApp(ReplayScreen(Recording.read(path)))
    async with app.run_test() as pilot:
        transcript = app.query_one(Transcript)
        await pilot.press("space", "end", "ctrl+g")
        whole = [line.text for line in transcript.lines]
        last_question = len(whole) - whole[::-1].index("You") - 1
        for _ in range(6):
            await pilot.press("left")
            assert [line.text for line in transcript.lines][:last_question] == whole[:last_question]
            assert transcript.virtual_size.height == len(transcript.lines)
