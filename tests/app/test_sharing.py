"""/replay and /export: what a session was, seen again and made a file of, from within the app."""

import os
import re
import stat
import sys
from pathlib import Path
from shutil import copy
from tempfile import gettempdir

import pytest
from textual.widgets import Input, Label

from ladechat.export.command import Wanted, run
from ladechat.screens.chat import recordings as exporting
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings.recorder import Recorder
from ladechat.widgets.bars.status_line import ANSWERING, PAUSED, StatusLine
from tests.app.stage import Driver, Stage, answered, ask, shows
from tests.fake_engine import FakeEngine
from tests.session.streams import GOLDEN
from tests.waiting import brings, press, until

WANTED = Wanted((80, 24), speed=1.0, idle_limit=None, step=None)


async def said(pilot: Driver, stage: Stage, words: str) -> str:
    """The message with these words, once it is there."""
    await until(lambda: any(words in notice for notice in stage.notices), pilot)
    return next(notice for notice in reversed(stage.notices) if words in notice)


def stand_in(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a script run in the place of `ladechat export`; its arguments are the recording, the file and options."""
    monkeypatch.setattr(exporting, "COMMAND", (sys.executable, "-c", f"import os, sys, time\n{script}"))


async def test_what_is_exported_is_what_ladechat_export_makes_of_a_recording_of_the_session(tmp_path: Path) -> None:
    stage = Stage(recorder=Recorder())
    stage.recorder.start(tmp_path / "talk.jsonl")
    async with stage.app.run_test() as pilot:
        await ask(pilot, "/export")
        await said(pilot, stage, "nothing to export yet")
        await ask(pilot, "/export talk.xyz")
        why = "A file to export to has to end in .cast, .gif, .html, .svg, .md or .json."
        assert await said(pilot, stage, "has to end") == why
        assert stage.prompt == "/export talk.xyz"
        await ask(pilot, "/export a b.html")
        await said(pilot, stage, 'put a name with spaces between quotation marks, as in "a b.html"')
        assert stage.prompt == "/export a b.html"
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        page = tmp_path / "a page.html"
        await ask(pilot, f'/export "{page}"', brings=lambda: stage.app.query_one("#exporting").display)
        await until(lambda: f"Exported: {page}." in stage.text, pilot)
        assert not stage.app.query_one("#exporting").display
        await ask(pilot, f'/export "{page}"')
        assert (await said(pilot, stage, "exists already")).endswith("or --force to overwrite it.")
        assert stage.prompt == f'/export "{page}"'
    run(tmp_path / "talk.jsonl", tmp_path / "expected.html", "html", WANTED, force=False)
    expected = (tmp_path / "expected.html").read_text(encoding="utf-8")
    assert len(re.findall(r'class="hue\d', expected)) > 10
    assert page.read_text(encoding="utf-8") == expected


HALF_WAY = """
print("drawing 50%", file=sys.stderr, flush=True)
while not os.path.exists(os.environ["GO_ON"]):
    time.sleep(0.01)
sys.exit("ladechat: The disk is full.")
"""


@pytest.mark.full
async def test_file_and_options_reach_the_export_and_its_sentence_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stand_in(monkeypatch, HALF_WAY)
    monkeypatch.setenv("GO_ON", str(tmp_path / "go on"))
    async with Stage().running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        async with brings(
            lambda: str(stage.app.query_one("#exporting", Label).content) == "exporting: drawing 50%", pilot
        ):
            await ask(pilot, "/export talk.gif --size 100x30")
        (tmp_path / "go on").touch()
        assert await said(pilot, stage, "full") == "The disk is full."
        stand_in(monkeypatch, "sys.exit('ladechat: ' + ' '.join(sys.argv[2:]))")
        await ask(pilot, "/export talk.gif --size 100x30")
        assert await said(pilot, stage, "--size") == f"{tmp_path / 'talk.gif'} --size 100x30"
        await ask(pilot, "/export --force")
        assert re.fullmatch(rf"{tmp_path}/ladechat-[\d-]+\.html --force", await said(pilot, stage, "--force"))
        await ask(pilot, "/export Tom's talk.html")
        await said(pilot, stage, "A quotation mark has no partner")

        def full(_: object) -> bytes:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(exporting, "encode", full)
        await ask(pilot, "/export talk.html")
        assert (
            await said(pilot, stage, "No space")
            == f"Nothing is exported: No space left on device; make room in {gettempdir()}."
        )
        monkeypatch.setattr("ladechat.screens.chat.recordings.in_page", lambda: True)
        await ask(pilot, "/export ../talk.html --force")
        await said(pilot, stage, "In a browser /export takes no argument")


WRITING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests run in the background
try:
    open(os.environ["WITNESS"], "w").write(f"{os.getpid()} {sys.argv[1]}")
    time.sleep(60)
except KeyboardInterrupt:
    open(os.environ["WITNESS"], "a").write(" cleared up")
"""


async def test_quitting_ends_an_export_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "witness"
    monkeypatch.setenv("WITNESS", str(witness))
    monkeypatch.setattr(exporting, "SECONDS_TO_LEAVE", 60.0)  # for a machine that has much to do
    stand_in(monkeypatch, WRITING)
    async with Stage().running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await ask(pilot, "/export talk.html", brings=lambda: witness.exists() and ".jsonl" in witness.read_text())
        await ask(pilot, "/export other.html")
        await said(pilot, stage, "when the export before it has ended")
        pid, recording = witness.read_text().split()
        assert stat.S_IMODE(os.stat(os.path.dirname(recording)).st_mode) == 0o700  # noqa: PTH116, PTH120 - at once
        await pilot.press("ctrl+q")
    assert witness.read_text().endswith("cleared up")
    assert not Path(recording).parent.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where F7 records to."""
    path = tmp_path / "talk.jsonl"
    monkeypatch.setattr("ladechat.screens.chat.recordings.default_path", lambda _: path)
    return path


@pytest.mark.full
async def test_a_replay_of_what_was_just_recorded_leads_back_to_the_chat_as_it_was(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.chat.recordings.recordings_folder", lambda: recorded.parent / "recordings")
    async with Stage(FakeEngine(answers=("An answer that is found.",))).running(size=(100, 30)) as (pilot, stage):
        await ask(pilot, "/replay")
        await said(pilot, stage, "Nothing has been recorded yet")
        await pilot.press("f7")
        await ask(pilot, "/replay")
        await said(pilot, stage, "The recording is under way")
        await answered(pilot, stage, "One?")
        await pilot.press("f7")
        assert "/replay" in (told := await said(pilot, stage, f"Recorded: {recorded}")) and "/export" in told
        before = stage.text
        await ask(pilot, "/replay", brings=shows(pilot, ReplayScreen))
        replay = stage.app.screen
        assert isinstance(replay, ReplayScreen)

        replay.player.playing = False
        async with brings(lambda: not replay.view.side.display and stage.screen.view.side.display, pilot):
            await pilot.press("home", "n", "right", "right", "f2")
        status = replay.query_one(StatusLine)
        assert status.activity == ANSWERING and PAUSED in status.render_line(0).text

        await press(pilot, "slash", *"answer", "enter", brings=lambda: replay.get_selected_text() == "answer")
        replay.query_one(Input).value = "that is"
        await press(pilot, "enter", brings=lambda: replay.get_selected_text() == "that is")
        await press(pilot, "escape", "left", brings=lambda: not replay.get_selected_text())

        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        assert any(key.action == "search" for key in getattr(stage.app.screen, "_keys"))  # noqa: B009
        await press(pilot, "escape", "escape", brings=stage.in_front)
        assert stage.text == before
        await answered(pilot, stage, "Two?", times=2)

        await ask(pilot, f"/replay {recorded.parent / 'none.jsonl'}")
        assert "No such file" in await said(pilot, stage, "cannot be read")
        await ask(pilot, f"/replay {__file__}")
        await said(pilot, stage, "is not a recording")


@pytest.mark.full
async def test_without_a_recording_of_its_own_a_session_replays_the_latest_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.chat.recordings.recordings_folder", lambda: tmp_path)
    earlier, latest = (tmp_path / f"2026-01-0{day}-100000-demo.ladechat.jsonl" for day in (1, 2))
    earlier.touch()
    copy(GOLDEN[-1], latest)
    async with Stage().running() as (pilot, stage):
        await ask(pilot, "/replay", brings=shows(pilot, ReplayScreen))
        await until(lambda: bool(stage.app.said), pilot)
        assert latest.name in stage.app.said[-1].text
