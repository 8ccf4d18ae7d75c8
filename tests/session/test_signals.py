"""Leaving when the system asks for it."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys, time
from ladechat.session import signals
signals.SECONDS_TO_LEAVE = 0.2

async def main():
    gone = asyncio.Event()
    def leave(code):
        print(code, flush=True)
        if sys.argv[1] == "hangs":
            time.sleep(3600)
        gone.set()
    signals.leave_on_signals(leave)
    print("ready", flush=True)
    await gone.wait()
    return 7

raise SystemExit(asyncio.run(main()))
"""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("manner", ["leaves", "hangs"])
def test_who_is_asked_to_leave_does_and_one_that_hangs_is_ended(number: signal.Signals, manner: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, manner], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"{128 + number}\n"
    assert process.wait(timeout=60) == (7 if manner == "leaves" else 128 + number)
