"""How long until something is on the screen: ladechat beside a Textual app that shows one word.

Both run in a pseudo terminal of 100 × 30, in turns, so that a busy machine is busy for both. The clock runs from the
start of the process to the moment at which the text that only a whole first frame contains has been written. Run it as

    python -m benchmarks.first_frame [--rounds 10] [--json FILE]
"""

import argparse
import fcntl
import json
import os
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from ladechat.bench.machine import describe

COLUMNS, ROWS = 100, 30
DEADLINE_SECONDS = 60
ESCAPES = re.compile(rb"\x1b(?:\[[0-9;:?<=>$]*[A-Za-z]|[PX^_\]][^\x07\x1b]*(?:\x07|\x1b\\)|.)")

EMPTY_APP = """
from textual.app import App
from textual.widgets import Label

class Empty(App):
    def compose(self):
        yield Label("ready-to-type")

Empty().run()
"""
CONTESTANTS = {
    "empty Textual app": ([sys.executable, "-c", EMPTY_APP], b"ready-to-type"),
    "ladechat": ([sys.executable, "-m", "ladechat"], b"Ask something"),
}


def first_frame_seconds(command: Sequence[str], shown: bytes) -> float:
    """Seconds from the start of `command` until `shown` is in the terminal, escape sequences aside.

    Raises:
        TimeoutError: it did not come, or the program ended before.
    """
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    written = b""
    try:
        while shown not in ESCAPES.sub(b"", written):
            left = started + DEADLINE_SECONDS - time.perf_counter()
            if left <= 0 or not select.select([outer], [], [], left)[0]:
                raise TimeoutError(f"{shown!r} was not shown by {command}")
            written += os.read(outer, 65536)
        return time.perf_counter() - started
    except OSError as error:  # the program is gone
        raise TimeoutError(f"{command} ended before it showed {shown!r}") from error
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(outer)


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for number in range(-1, arguments.rounds):  # the first round only warms the file cache
        for name, (command, shown) in CONTESTANTS.items():
            took = first_frame_seconds(command, shown)
            if number >= 0:
                seconds[name].append(took)

    milliseconds = {
        name: {"median": round(1000 * statistics.median(taken)), "range": [round(1000 * f(taken)) for f in (min, max)]}
        for name, taken in seconds.items()
    }
    empty, ladechat = (statistics.median(taken) for taken in seconds.values())
    report = {"machine": describe(), "rounds": arguments.rounds, "milliseconds": milliseconds}
    report["ratio"] = round(ladechat / empty, 2)
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
