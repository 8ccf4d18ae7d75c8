"""An engine that is a command of the user's, in the whole program: its link is shown, breaks, and is taken up again."""

import os
import re
import shlex
import signal
import sys

import pytest

from tests.engine.wire import ROOT
from tests.terminal.conftest import Start
from tests.terminal.tmux import Terminal, shows, still_runs, words

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]

FAKE = f"env PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -m tests.fake_engine_process"
LINK = re.compile(r"link \d[\d.]* ms")


def engine_in(terminal: Terminal) -> int:
    """The process of the engine, without the app and the shell that started it."""
    found = terminal.processes().items()
    program = f"{sys.executable} -m tests.fake_engine_process"
    [engine] = [number for number, command in found if command.startswith(program)]
    return engine


def test_a_lost_link_keeps_what_has_come_and_f5_goes_on_with_it(start: Start) -> None:
    terminal = start((80, 24), "--engine", f"{FAKE} 3 engine")
    terminal.wait_for("The latency of the link", LINK.search, shows("ready"))
    terminal.ask("What is the pool?")
    terminal.wait_for("Three passes", shows("3 passes"))
    lost = engine_in(terminal)
    os.kill(lost, signal.SIGKILL)
    screen = terminal.wait_for("What happened", shows("(signal 9)"), shows("stopped"), shows("F5 starts it again"))
    assert "What has come stays" in words(screen) and not LINK.search(screen)
    terminal.press("F5")
    terminal.wait_for("The next engine", LINK.search, shows("ready"))
    assert engine_in(terminal) != lost
    terminal.ask("/continue")
    terminal.wait_for("The rest of the answer", shows("6 passes"))
    left = engine_in(terminal)
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
    assert not still_runs(left)


def test_an_app_that_is_killed_leaves_no_engine_of_a_command(start: Start) -> None:
    terminal = start((80, 24), "--engine", f"sh -c {shlex.quote(f'{FAKE} nowhere engine; :')}")
    terminal.wait_for("The engine", LINK.search)
    engine = engine_in(terminal)
    [app] = [number for number, command in terminal.processes().items() if "-m ladechat" in command]
    os.kill(app, signal.SIGKILL)
    terminal.wait_for("The end of the engine", lambda _: not still_runs(engine))
