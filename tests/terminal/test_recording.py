"""The whole program, recorded and replayed, whatever is killed on the way."""

import os
import re
import signal
from pathlib import Path

import pytest

from ladechat.protocol import Step, TurnFinished
from ladechat.session.recordings.recording import Recording
from tests.terminal.conftest import SLOW, Start
from tests.terminal.tmux import BEGUN, QUESTION, SUMMARY, engine_process, shows, still_runs, ui_process, words

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]


def text_so_far(path: Path) -> str:
    """What the complete steps of the last answer in a recording have yielded."""
    recording = Recording.read(path)
    last = recording.events[recording.turns[-1].position :]
    return "".join(piece for step in last if isinstance(step, Step) for piece in step.pieces)


@pytest.mark.full
def test_a_recording_whose_engine_and_then_whose_app_were_killed_replays_up_to_its_last_complete_line(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "talk.ladechat.jsonl"
    terminal = start((160, 48), "--record", str(path), *SLOW)
    terminal.wait_for("The mark of a recording", lambda screen: "● rec" in screen)
    terminal.ask()
    terminal.wait_for("The beginning of the answer", BEGUN.search)
    os.kill(engine_process(terminal), signal.SIGKILL)
    terminal.wait_for("What happened", lambda screen: "The engine has ended." in screen)
    terminal.press("F5")
    terminal.wait_for("The new engine", lambda screen: re.search(r"ready +● rec$", screen, re.MULTILINE))
    terminal.ask()  # what has come of the first answer stays
    terminal.wait_for("The second answer", lambda screen: len(BEGUN.findall(screen)) == 2)
    engine = engine_process(terminal)
    os.kill(ui_process(terminal), signal.SIGKILL)
    terminal.wait_for("The end of the engine", lambda _: not still_runs(engine))

    recording = Recording.read(path)
    assert not recording.closed
    assert [turn.question for turn in recording.turns] == [QUESTION, QUESTION]
    lines = path.read_bytes().count(b"\n")
    assert len(recording.events) == lines
    path.write_bytes(path.read_bytes() + b'{"event":"step","seq":')  # a line that the end cut short

    replay = start((160, 48), "replay", str(path), first="question")
    replay.press("End")
    ended = ("■", "The engine has ended.", "interrupted", "the last line is not complete")
    replay.wait_for(
        "The end of the replay",
        *map(shows, ended),
        lambda screen: screen.count(QUESTION) >= 2 and words(text_so_far(path)) in words(screen),
    )
    replay.press("q")
    assert replay.wait_for_exit() == 0


@pytest.mark.full
def test_a_session_is_recorded_to_its_end_and_stepped_through(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "talk.ladechat.jsonl"
    terminal = start((80, 24), "--record", str(path))
    terminal.ask()
    terminal.wait_for("The end of the answer", SUMMARY.search)
    terminal.press("F7")
    terminal.wait_for("The end of the recording", lambda screen: "● rec" not in screen)
    recording = Recording.read(path)
    assert recording.closed and recording.notices == []
    [finished] = [event for event in recording.events if isinstance(event, TurnFinished)]
    assert finished.text == text_so_far(path)

    replay = start((80, 24), "replay", str(path), first="question")
    replay.press("End")
    replay.wait_for("The end of the replay", lambda screen: "■" in screen)
    replay.wait_for("The same screen", lambda screen: texts_and_panels(screen) == texts_and_panels(terminal.screen()))
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
    replay.press("Home")
    replay.press("Right")
    replay.wait_for("The first step", lambda screen: "pass 1 of" in screen and "‖" in screen)
    assert not any("torch" in maps for maps in loaded_libraries(ui_process(replay)))


def texts_and_panels(screen: str) -> tuple[list[str], list[str]]:
    """The conversation below the title, which only the chat has, and the panels beside it, without the scroll bar."""
    rows = screen.splitlines()[:20]
    return [row[:40] for row in rows[1:]], [row[42:] for row in rows]


def loaded_libraries(process: int) -> list[str]:
    """Files that a process has mapped, where the system tells."""
    maps = Path(f"/proc/{process}/maps")
    return maps.read_text().splitlines() if maps.exists() else []
