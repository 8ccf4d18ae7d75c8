"""How long a recording of 200,000 steps takes to open: until its first frame, and until all of it is read.

The steps are those of one answer of the bundled model with lookahead decoding, recorded first and repeated, each answer
a turn of its own. The clock runs from the start of `ladechat replay` in a pseudo terminal of 100 × 30
(`benchmarks.first_frame`). A recording of a single answer is opened in turns with it: what that takes is the program's
own. Reading it whole is timed in a process of its own, with the memory that the events take. How late the event loop
is at most while the rest is read after the first frame, and so a key or a frame, is seen in an app without a terminal.
Run it as

    python -m benchmarks.long_recording [--steps 200000] [--rounds 5] [--json FILE]
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.common import command_line, in_turns, spread, written
from benchmarks.first_frame import first_frame_seconds
from ladechat.app import LadechatApp
from ladechat.protocol import Asked, Closed, Event, Header, Ready, Step, TurnFinished, TurnStarted, decode_event, encode
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings.recording import Recording

QUESTION = "What is the n-gram pool?"
SHOWN = "What is the n-gram pool"
READ_WHOLE = """
import gc, json, resource, sys, time
from pathlib import Path
from ladechat.session.recordings.recording import Recording
gc.disable()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
recording = Recording.read(Path(sys.argv[1]))
seconds = time.perf_counter() - began
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"seconds": round(seconds, 2), "events": len(recording.events), "megabytes": grown // 1024}))
"""
"""In a fresh process: what was read before would count as memory."""
LOOK_SECONDS = 0.002
"""Between two looks at whether the event loop is late."""


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short.ladechat.jsonl", Path(folder) / "long.ladechat.jsonl"
        answer = record()
        write(short, answer, steps=1)
        write(long, answer, arguments.steps)
        names = {"one answer": short, f"{arguments.steps:,} steps": long}
        opening = {name: partial(opened, path) for name, path in names.items()}
        whole = json.loads(subprocess.check_output([sys.executable, "-c", READ_WHOLE, str(long)]))
        figures = {
            "file_megabytes": long.stat().st_size // 2**20,
            "first_frame_ms": {name: spread(taken) for name, taken in in_turns(opening, arguments.rounds).items()},
            "read_whole": whole,
            "after_the_first_frame": asyncio.run(behind(long)),
        }
    print(json.dumps(written(figures, arguments.json), indent=1))


def opened(path: Path) -> float:
    """Seconds until `ladechat replay` shows the first frame of a recording."""
    return first_frame_seconds([sys.executable, "-m", "ladechat", "replay", str(path)], SHOWN)


def record() -> list[Event]:
    """What the bundled model's engine says to a question, its header and `ready` first."""
    command = [sys.executable, "-m", "ladechat", "ask", "--json", "--decoder", "lookahead", QUESTION]
    events = [decode_event(line) for line in subprocess.check_output(command).splitlines()]
    return [event for event in events if isinstance(event, Header | Ready | TurnStarted | Step | TurnFinished)]


def write(path: Path, said: list[Event], steps: int) -> None:
    """The answer again and again, until there are so many steps."""
    head, answer = (
        [event for event in said if not hasattr(event, "turn")],
        [each for each in said if hasattr(each, "turn")],
    )
    seq, turn, done = 0, 0, 0
    with path.open("wb") as file:
        for event in head:
            file.write(encode(msgspec.structs.replace(event, seq=seq, t=0.0)))
            seq += 1
        while done < steps:
            turn += 1
            file.write(encode(Asked(turn=turn, text=QUESTION, seq=seq - 1, t=done / 100)))
            for event in answer:
                done += isinstance(event, Step)
                file.write(encode(msgspec.structs.replace(event, seq=seq, t=done / 100, turn=turn)))
                seq += 1
        file.write(encode(Closed(seq=seq - 1, t=done / 100)))


async def behind(path: Path) -> dict[str, float]:
    """Seconds from the first frame until all is read, and how late the event loop was at most meanwhile."""
    screen = ReplayScreen(Recording(path))
    late: list[float] = []
    async with LadechatApp(screen).run_test(size=(100, 30)):
        began = before = time.perf_counter()
        while not screen.recording.complete:
            await asyncio.sleep(LOOK_SECONDS)
            before, now = time.perf_counter(), before
            late.append(before - now - LOOK_SECONDS)
        seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 1),
        "longest_stall_ms": round(1000 * max(late), 1),
        "stalls_over_50_ms": sum(each > 0.05 for each in late),
    }


if __name__ == "__main__":
    main()
