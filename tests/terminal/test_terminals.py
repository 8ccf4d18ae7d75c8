"""The real program, and what terminals do to it: bytes that are no text, stops and signals in mid-work."""

import os
import re
import signal

import psutil
import pytest

from tests.terminal.conftest import Start
from tests.terminal.tmux import Terminal, ui_process
from tests.waiting import wait_for

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]

CAFES = "caf\N{REPLACEMENT CHARACTER}s"


def send(terminal: Terminal, data: bytes) -> None:
    """Send bytes as if the terminal had sent them."""
    terminal._tmux("send-keys", "-H", *(f"{byte:02x}" for byte in data))


def test_bytes_stops_and_pastes_leave_the_app_as_it_is(start: Start) -> None:
    terminal = start((80, 24))
    send(terminal, b"caf\xe9s")
    terminal.wait_for("The byte that is no text", lambda screen: CAFES in screen)
    ui = ui_process(terminal)
    for number in (signal.SIGTSTP, signal.SIGSTOP):
        os.kill(ui, number)
        wait_for(lambda: psutil.Process(ui).status() == psutil.STATUS_STOPPED)
        terminal.clear()
        os.kill(ui, signal.SIGCONT)
        terminal.wait_for("All of the screen", lambda screen: CAFES in screen and "Jacobi window" in screen)
        terminal.type("!")
    terminal.wait_for("Each key once", lambda screen: re.search(rf"{CAFES}!!$", screen, re.MULTILINE))
    send(terminal, b"\x1b[200~build \x1b[32mOK\x1b[0m done\rsecond line\r/quit\r\x1b[201~.")
    pasted = r"build ␛\[32mOK␛\[0m done\s+second line\s+/quit\s+\.$"
    terminal.wait_for("All of the paste, in the prompt", lambda screen: re.search(pasted, screen, re.MULTILINE))
    send(terminal, b"\x1b[200~pasted")
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
