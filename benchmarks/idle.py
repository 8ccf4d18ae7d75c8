"""What the app takes while nothing happens: nobody types, no step comes, nothing moves.

Run as `python -m benchmarks.idle [--seconds 60] [--only NAME …] [--write]`, on Linux; eight minutes. With `--write`
the figures go into `benchmarks/results/idle.json`. Each screen is the real program on a pseudo terminal of 120 × 40,
with the bundled model. What its processes have used of a core is read before and after: of the app, and of the engine
with the process that watches over it.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.common import RESULTS, command_line, console, own_home, written
from benchmarks.ui_terminal import Terminal, children_of, cpu_seconds

FILE = RESULTS / "idle.json"
SIZE = (120, 40)
QUESTION = "How does lookahead decoding work?"
SPACE, END, ENTER, PALETTE = b" ", b"\x1b[F", b"\r", b"\x10"
SECONDS_TO_SETTLE = 3.0
"""Without a frame: messages have gone, and so has what was to be done a little later."""
BAR = 0.003
"""Of a core, at most."""

SETTLED = 0
Step = str | bytes | int
"""On the way to a screen: a text that is waited for, keys that are typed, or `SETTLED`, until no frame comes."""


def main() -> None:
    """Measure each screen, print a table, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each screen")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these screens alone")
    parser.add_argument("--write", action="store_true", help=f"into {FILE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = own_home(folder)
        recording = Path(folder) / "talk.ladechat.jsonl"
        record, replay = ["--record", str(recording)], ["replay", str(recording)]
        race = ["race", QUESTION, "--max-new-tokens", "24"]
        screens: dict[str, tuple[list[str], list[Step]]] = {
            "chat": (record, ["Ask something", f"{QUESTION}\r".encode(), "tok/s"]),
            "palette": ([], ["Ask something", SETTLED, PALETTE, "Search for commands"]),
            "replay, paused": (replay, ["▶", SPACE]),
            "replay, finished": (replay, ["▶", END]),
            "race, paused": (race, ["▶ pass by pass", SPACE]),
            "race, finished": (race, ["▶ pass by pass", END]),
            "lessons": (["learn"], ["ready", ENTER, "passes, "]),
        }
        wanted = arguments.only or list(screens)
        rows = [
            {"screen": name, **measure(options, steps, environment, arguments.seconds)}
            for name, (options, steps) in screens.items()
            if name in wanted or name == "chat"  # which makes the recording
        ]
    show(rows)
    written({"screen": SIZE, "seconds": arguments.seconds, "rows": rows}, FILE if arguments.write else None)


def measure(options: list[str], steps: list[Step], environment: dict[str, str], seconds: float) -> dict[str, Any]:
    """The shares of a core that the app and its engine take on the screen that `steps` lead to; and bytes written."""
    terminal = Terminal([sys.executable, "-m", "ladechat", *options], environment, SIZE)
    try:
        for step in (*steps, SETTLED):
            if isinstance(step, str):
                terminal.wait_for(step)
            elif isinstance(step, bytes):
                terminal.type(step)
            else:
                terminal.settle(SECONDS_TO_SETTLE)
        engine = children_of(terminal.process)
        before = [cpu_seconds(terminal.process), sum(map(cpu_seconds, engine))]
        written = terminal.listen(seconds)
        after = [cpu_seconds(terminal.process), sum(map(cpu_seconds, engine))]
    finally:
        terminal.close()
    app, engine_share = (round((end - start) / seconds, 5) for start, end in zip(before, after, strict=True))
    return {"app": app, "engine": engine_share if engine else None, "written_bytes": len(written)}


def show(rows: list[dict[str, Any]]) -> None:
    """The figures, each with its bar."""
    table = Table("screen", "the app, of a core", "the engine", "bytes written", "bar")
    for row in rows:
        engine = "" if row["engine"] is None else f"{row['engine']:.2%}"
        table.add_row(row["screen"], f"{row['app']:.2%}", engine, str(row["written_bytes"]), f"≤ {BAR:.1%}")
    console().print(table)


if __name__ == "__main__":
    main()
