"""The whole program, and what is left of it when something ends that should not have: nothing runs, nothing is lost."""

import os
import re
import signal
from pathlib import Path

import pytest

from ladechat.session.recordings.recording import Recording
from tests.terminal.conftest import SLOW, Start
from tests.terminal.tmux import BEGUN, QUESTION, SUMMARY, Terminal, engine_process, shows, still_runs, ui_process

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]

READY = re.compile(r"ready( +● rec)?$", re.MULTILINE)


def wait_for_the_end_of(terminal: Terminal, *processes: int) -> None:
    terminal.wait_for("The end of all processes", lambda _: not any(map(still_runs, processes)))


@pytest.mark.full
def test_a_terminal_that_is_closed_ends_everything_and_the_recording_in_order(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    terminal = start((100, 30), "--record", str(path), *SLOW)
    terminal.ask()
    terminal.wait_for("The beginning of the answer", BEGUN.search)
    ui, engine = ui_process(terminal), engine_process(terminal)
    watcher = start((80, 24), "--version", first="ladechat")  # a terminal that is still there to look from
    terminal.close()
    wait_for_the_end_of(watcher, ui, engine)
    recording = Recording.read(path)
    assert recording.closed
    assert [turn.question for turn in recording.turns] == [QUESTION]


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_an_app_that_is_told_to_end_ends_a_frozen_engine_too(start: Start, number: signal.Signals) -> None:
    terminal = start((80, 24))
    terminal.wait_for("The engine's process", lambda _: len(terminal.processes()) > 1)
    ui, engine = ui_process(terminal), engine_process(terminal)
    os.kill(engine, signal.SIGSTOP)
    os.kill(ui, number)
    assert terminal.wait_for_exit() == 128 + number
    wait_for_the_end_of(terminal, ui, engine)


@pytest.mark.full
def test_a_polite_kill_ends_everything_and_says_so(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    terminal = start((100, 30), "--record", str(path))
    terminal.wait_for("The model", READY.search)
    ui, engine = ui_process(terminal), engine_process(terminal)
    os.kill(ui, signal.SIGTERM)
    assert terminal.wait_for_exit() == 128 + signal.SIGTERM
    wait_for_the_end_of(terminal, ui, engine)
    assert "Traceback" not in terminal.screen()
    assert Recording.read(path).closed


@pytest.mark.full
def test_an_engine_that_is_frozen_in_mid_answer_is_replaced_and_the_question_asked_again(start: Start) -> None:
    terminal = start((120, 40), *SLOW)
    terminal.ask()
    terminal.wait_for("The beginning of the answer", BEGUN.search)
    frozen = engine_process(terminal)
    os.kill(frozen, signal.SIGSTOP)
    terminal.press("F5")
    terminal.wait_for("The new engine", READY.search, shows("This answer was broken off"), shows(QUESTION))
    wait_for_the_end_of(terminal, frozen)
    terminal.press("Enter")
    terminal.wait_for("The second answer", lambda screen: len(BEGUN.findall(screen)) == 2)

    frozen = engine_process(terminal)
    os.kill(frozen, signal.SIGSTOP)
    ui = ui_process(terminal)
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
    wait_for_the_end_of(terminal, ui, frozen)


@pytest.mark.full
def test_an_app_that_is_killed_while_its_engine_loads_leaves_no_process(start: Start) -> None:
    terminal = start((100, 30))
    terminal.wait_for("The engine's process", lambda _: len(terminal.processes()) > 1)
    ui, engine = ui_process(terminal), engine_process(terminal)
    os.kill(ui, signal.SIGKILL)
    wait_for_the_end_of(terminal, ui, engine)


@pytest.mark.full
def test_two_at_once_do_not_disturb_each_other(start: Start) -> None:
    terminals = [start((100, 30)), start((100, 30))]
    for terminal in terminals:
        terminal.ask()
    for terminal in terminals:
        terminal.wait_for("The end of the answer", SUMMARY.search)
    first, second = terminals
    first.press("C-q")
    assert first.wait_for_exit() == 0
    second.ask("And the Jacobi window?")
    second.wait_for("The second answer", lambda screen: len(SUMMARY.findall(screen)) == 2)
