"""`ladechat replay` with two recordings: on the screen side by side, or in one sentence why not."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladechat.app import LadechatApp
from ladechat.screens.race import RaceScreen
from ladechat.session.playing import Clock
from ladechat.session.race import Comparison
from ladechat.session.recordings.recording import Recording
from ladechat.shell import cli
from ladechat.widgets.race import LaneView, Remarks
from tests.session.streams import recorded, turn
from tests.waiting import brings, until


def test_two_recordings_are_shown_side_by_side_or_it_is_said_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[Comparison] = []

    def run_race(comparison: Comparison) -> int:
        compared.append(comparison)
        return 0

    monkeypatch.setattr("ladechat.app.run_race", run_race)
    monkeypatch.setattr("ladechat.shell.replay.in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.checks.drawn_in_terminal", lambda: True)
    one = str(recorded(tmp_path, *turn(1)))
    result = CliRunner().invoke(cli.app, ["replay", one, one])
    assert result.exit_code == 0 and [len(lane.steps) for lane in compared[0].lanes] == [3, 3]
    assert len(list(RaceScreen(compared[0]).decoders)) == 1, "help explains a decoder once"
    (tmp_path / "none").mkdir()
    none = str(recorded(tmp_path / "none"))
    for arguments, why in (([none], "has no answer"), ([one, "--real-time"], "are for one recording")):
        result = CliRunner().invoke(cli.app, ["replay", one, *arguments])
        assert result.exit_code == 2 and why in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.full
async def test_both_run_along_one_clock_with_the_keys_of_a_race(tmp_path: Path) -> None:
    recording = Recording.read(recorded(tmp_path, *turn(1)))
    screen = RaceScreen(Comparison(recording, recording))
    app = LadechatApp(screen)
    async with app.run_test(size=(120, 30)) as pilot:
        await until(lambda: screen.track is not None, pilot)
        await pilot.press("home")
        async with brings(lambda: [len(view._shown) for view in screen.query(LaneView)] == [2, 2], pilot):
            await pilot.press("right", "right")
        async with brings(lambda: screen.track is not None and screen.track.clock is Clock.SECONDS, pilot):
            await pilot.press("c")
        async with brings(lambda: "identical" in screen.query_one("#race-remarks", Remarks).sentences[0], pilot):
            await pilot.press("end")
        assert "Question 1?" in screen.query_one("#race-question", Remarks).sentences[0]
        await pilot.press("escape")
    assert app.return_code == 0
