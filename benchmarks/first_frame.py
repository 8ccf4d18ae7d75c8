"""How long until something is on the screen: ladechat beside a Textual app that shows one word.

Both run in a pseudo terminal of 100 × 30, in turns, so that a busy machine is busy for both. The clock runs from the
start of the process to the moment at which the text that only a whole first frame contains has been written. Run it as

    python -m benchmarks.first_frame [--rounds 10] [--json FILE]
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.common import command_line, in_turns, spread, written
from benchmarks.ui_terminal import Terminal

SIZE = (100, 30)

EMPTY_APP = """
from textual.app import App
from textual.widgets import Label

class Empty(App):
    def compose(self):
        yield Label("ready-to-type")

Empty().run()
"""
CONTESTANTS = {
    "empty Textual app": ([sys.executable, "-c", EMPTY_APP], "ready-to-type"),
    "ladechat": ([sys.executable, "-m", "ladechat"], "Ask something"),
}


def first_frame_seconds(command: Sequence[str], shown: str) -> float:
    """Seconds from the start of `command` until `shown` is in the terminal, escape sequences aside.

    Raises:
        TimeoutError: it did not come, or the program ended before.
    """
    started = time.perf_counter()
    terminal = Terminal(command, dict(os.environ), SIZE)
    try:
        terminal.wait_for(shown)
        return time.perf_counter() - started
    finally:
        terminal.close()


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds = in_turns({name: partial(first_frame_seconds, *one) for name, one in CONTESTANTS.items()}, options.rounds)
    empty, ladechat = (statistics.median(taken) for taken in seconds.values())
    figures = {
        "rounds": options.rounds,
        "milliseconds": {name: spread(taken) for name, taken in seconds.items()},
        "ratio": round(ladechat / empty, 2),
    }
    print(json.dumps(written(figures, options.json), indent=1))


if __name__ == "__main__":
    main()
