"""Going back in a replay whose answers are formatted."""

from pathlib import Path

import pytest

from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import recorded_turns, replaying


async def test_going_back_through_formatted_answers_loses_no_earlier_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.widgets.transcript.transcript.FORMATTING_SECONDS", 1000.0)  # as where the key is held
    async with replaying(recorded_turns(tmp_path, turns=3, steps=8), playing=True) as (pilot, app, _):
        transcript = app.query_one(Transcript)
        await pilot.press("space", "end", "ctrl+g")
        whole = [line.text for line in transcript.lines]
        last_question = len(whole) - whole[::-1].index("You") - 1
        for _ in range(6):
            await pilot.press("left")
            assert [line.text for line in transcript.lines][:last_question] == whole[:last_question]
            assert transcript.virtual_size.height == len(transcript.lines)
