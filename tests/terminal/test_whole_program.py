"""The whole program in a real terminal: the app, its engine process, and the bundled model."""

import os
import re
import signal
import subprocess
import sys

import pytest

from ladechat.palette import HUES
from tests.terminal.conftest import SLOW, Start
from tests.terminal.tmux import BEGUN, SUMMARY, coloured_text, engine_process, shows, still_runs, words

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]


SHORT = "Write a Python function that reverses a string."
"""Its answer fits the smallest screen, question and all."""

PANELS = (
    r"window .*W 5 · N 3",
    r"n-gram pool.* (\d+ n-grams|a guess in \d+ %)",
    r"\d+(/| of )\d+ reached draft",
    r"[\d.]+ tokens a pass +[\d.]+ tok/s|times disagree",
    r"cpu · float32|cuda",
)


@pytest.fixture(scope="module")
def plain_answer() -> str:
    """What plain decoding answers, in a pipe."""
    command = [sys.executable, "-m", "ladechat", "ask", SHORT, "--decoder", "autoregressive"]
    return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def hues_on(screen: str) -> set[str]:
    """The hues of steps that letters on a coloured screen have."""
    hues = {";".join(["2", *(str(int(hue[i : i + 2], 16)) for i in (1, 3, 5))]) for hue in HUES[True]}
    return hues & {colour for text, colour in coloured_text(screen) if any(map(str.isalpha, text))}


@pytest.mark.parametrize("size", [pytest.param((80, 24), marks=pytest.mark.full), (200, 60)], ids=["80x24", "200x60"])
def test_a_question_is_answered_in_colours_of_steps_as_plain_decoding_answers(
    start: Start, plain_answer: str, size: tuple[int, int]
) -> None:
    terminal = start(size, "--decoder", "lookahead")
    terminal.type(SHORT)  # the engine still loads
    terminal.press("Enter")
    terminal.wait_for(
        "The end of the answer, and each panel", SUMMARY.search, *(re.compile(it).search for it in PANELS)
    )

    terminal.press("F2")  # without the panels, the lines of the answer have the screen to themselves
    terminal.wait_for("The answer without panels", lambda screen: words(plain_answer) in words(screen))
    terminal.wait_for("Its colours", lambda _: len(hues_on(terminal.coloured_screen())) >= 3)


def test_quitting_leaves_no_process_and_a_clean_terminal(start: Start) -> None:
    terminal = start((80, 24))
    terminal.wait_for("The engine's process", lambda _: len(terminal.processes()) > 1)
    processes = terminal.processes()
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
    assert "Traceback" not in terminal.screen()
    terminal.wait_for("The end of all processes", lambda _: not any(map(still_runs, processes)))


@pytest.mark.full
def test_escape_stops_an_answer_and_what_there_is_stays(start: Start) -> None:
    terminal = start((120, 40), *SLOW)
    terminal.ask()
    terminal.wait_for("The beginning of the answer", BEGUN.search)
    terminal.press("Escape")
    terminal.wait_for("The end of the answer", SUMMARY.search, shows("stopped"), shows("The n-gram"))


@pytest.mark.full
def test_an_engine_that_was_killed_leaves_the_conversation_and_can_be_started_again(start: Start) -> None:
    terminal = start((120, 60))
    terminal.ask(SHORT)
    terminal.wait_for("The end of the answer", SUMMARY.search)
    os.kill(engine_process(terminal), signal.SIGKILL)
    screen = terminal.wait_for("What happened", shows("F5"), shows(SHORT))
    assert "Traceback" not in screen

    terminal.press("F5")
    terminal.wait_for("The new engine", lambda screen: re.search(r"ready$", screen, re.MULTILINE))
    terminal.ask("Count from 8 to 24.")
    terminal.wait_for("The second answer", lambda screen: len(SUMMARY.findall(screen)) == 2, shows(SHORT))
