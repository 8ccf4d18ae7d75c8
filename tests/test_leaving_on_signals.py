"""Leaving when the system asks for it."""

import signal
import subprocess
import sys

import pytest

from tests.waiting import patience

PROGRAM = """
import asyncio, sys, time
from ladechat import terminal
terminal.SECONDS_TO_LEAVE = 0.2

async def main():
    gone = asyncio.Event()
    def leave(code):
        print(code, flush=True)
        if sys.argv[1] == "hangs":
            time.sleep(3600)
        gone.set()
    terminal.leave_on_signals(leave, lambda: print("gave up", flush=True))
    print("ready", flush=True)
    while sys.argv[1] == "is busy":
        pass
    await gone.wait()
    return 7

raise SystemExit(asyncio.run(main()))
"""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize(
    ("manner", "says", "code"),
    [("leaves", "{}\n", 7), ("hangs", "{}\ngave up\n", None), ("is busy", "gave up\n", None)],
)
def test_who_is_asked_to_leave_does_and_one_that_hangs_or_is_busy_is_ended(
    number: signal.Signals, manner: str, says: str, code: int | None
) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, manner], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.read() == says.format(128 + number)
    assert process.wait(patience()) == (code or 128 + number)
