"""What the app takes, and how quickly it answers keys, while 320 steps a second come; and what it takes of the engine.

Run as `python -m benchmarks.ui [--rounds 5] [--model FOLDER] [--write]`, on Linux, on a machine that does nothing else;
about five minutes, with a model of 135 M parameters twenty. With `--write` the figures go into
`benchmarks/results/ui.json`. Everything is seen from outside, on a pseudo terminal of 140 × 45
(`benchmarks.ui_terminal`):

- The steps are recorded first, of the bundled model with lookahead decoding. A scripted engine in a process of its own
  repeats them (`benchmarks.ui_engine`). The rest of the app is as it always is.
- A frame is an update of the screen that is written between the marks of synchronized output.
- The latency of a key runs from typing it to having read its echo: a letter that occurs nowhere else, in the prompt,
  while steps come; Page Up and Page Down by the next frame, while none do.
- Both with a conversation of 5,000 tokens and with one of 100,000.
- What the app takes of the engine: the same questions to the real engine, in the app and through a pipe, in turns. The
  engine computes on all cores, so the app takes its share of them; and then on all but one, which is the app's.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.common import RESULTS, command_line, console, own_home, written
from benchmarks.ui_engine import end_of
from benchmarks.ui_terminal import COLUMNS, ROWS, Terminal, frames
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Generate, Message, Settings, encode
from ladechat.widgets.formatting import counted

FILE = RESULTS / "ui.json"
QUESTION = "Write a long story about a lighthouse keeper and his dog."
"""Of some questions, the one with the longest answer of the bundled model: 161 tokens."""
DECODERS = {"demo": "lookahead"}
"""What each model is asked with. Any other decodes plainly: what it drafts would hang on what it measured before."""
PLAIN = "autoregressive"
ANSWERS = 8
"""So many in one session, each behind the first; one alone takes half a second, too short to be compared."""
SECONDS_BETWEEN_ANSWERS = 1.0
"""In the app the screen comes to rest between two; an engine that goes on at once decodes faster."""
MOST_TOKENS = 160
"""Of each of these answers."""
FINISHED = b'"turn_finished"'
CLEAR = b"\x0c"
CORES = os.cpu_count() or 1
CONVERSATIONS = (5_000, 100_000)
ANSWER_TOKENS = 2_500
"""Of each answer in these conversations."""
STREAM_SECONDS = 10
PAGES = 5
"""Of 5,000 tokens so many can be gone up."""
PAGE_ROUNDS = 4
SECONDS_BETWEEN_PAGES = 0.2
ESCAPE, PAGE_UP, PAGE_DOWN = b"\x1b", b"\x1b[5~", b"\x1b[6~"
LETTERS = [chr(code) for code in (*range(0x410, 0x450), *range(0x48A, 0x500))]  # Cyrillic: the recording has none


def main() -> None:
    """Measure, print a table, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of the real engine")
    parser.add_argument("--model", help="the folder of a real model, to be measured beside the bundled one")
    parser.add_argument("--write", action="store_true", help=f"into {FILE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environment = own_home(folder)
        recording = home / "steps.jsonl"
        recording.write_bytes(ask(environment))
        conversations = [measure(tokens, recording, environment) for tokens in CONVERSATIONS]
        models = ["demo", *([arguments.model] if arguments.model else [])]
        engines = [
            measure_engine(model, threads, arguments.rounds, home / str(number), environment)
            for number, model in enumerate(models)
            for threads in (CORES, max(CORES - 1, 1))
        ]
    report = {"screen": [COLUMNS, ROWS], "conversations": conversations, "engines": engines}
    show(written(report, FILE if arguments.write else None))


# --- with the scripted engine -----------------------------------------------------------------------------------------


def measure(tokens: int, recording: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The figures of the app after a conversation of so many tokens."""
    start = f"from benchmarks.ui_engine import run_app; run_app({str(recording)!r})"
    terminal = Terminal([sys.executable, "-c", start], environment)
    try:
        terminal.wait_for("Ask something")
        terminal.settle()
        began = time.perf_counter()
        for turn in range(1, tokens // ANSWER_TOKENS + 1):
            terminal.type(f"fill {ANSWER_TOKENS}\r")
            terminal.wait_for(end_of(turn))
        filled = time.perf_counter() - began
        terminal.settle()
        pages = page_latencies(terminal)
        figures = stream(terminal)
        letters = letter_latencies(terminal)
    finally:
        terminal.close()
    return {
        "tokens": tokens,
        "filled_in_seconds": round(filled, 1),
        **figures,
        "key_ms": spread(letters),
        "page_ms": spread(pages),
    }


def stream(terminal: Terminal) -> dict[str, Any]:
    """Frames a second, and the share of a core that the app takes, while nobody types."""
    terminal.type("stream\r")
    terminal.listen(1.0)
    before, began = terminal.cpu_seconds(), time.perf_counter()
    written = terminal.listen(STREAM_SECONDS)
    took = time.perf_counter() - began
    used = terminal.cpu_seconds() - before
    terminal.type(ESCAPE)
    terminal.settle()
    return {
        "frames_per_second": round(frames(written) / took, 1),
        "cpu_share": round(used / took, 3),
        "written_bytes_per_second": round(len(written) / took),
    }


def letter_latencies(terminal: Terminal) -> list[float]:
    """Milliseconds from a key to its echo in the prompt, while steps come. The keys come at all points of a frame."""
    terminal.type("stream\r")
    terminal.listen(1.0)
    taken = []
    for number, letter in enumerate(LETTERS):  # each once: the prompt is painted whole, with those before
        terminal.type(letter)
        taken.append(1000 * terminal.wait_for(letter))
        terminal.listen(0.02 + 0.0007 * (number % 47))
    terminal.type(ESCAPE)
    terminal.settle()
    return taken


def page_latencies(terminal: Terminal) -> list[float]:
    """Milliseconds from Page Up or Page Down to the next frame, while no steps come: up some pages, and down again."""
    taken = []
    for _ in range(PAGE_ROUNDS):
        for key in (*[PAGE_UP] * PAGES, *[PAGE_DOWN] * PAGES):
            terminal.type(key)
            taken.append(1000 * terminal.wait(lambda written: frames(written) > 0))
            terminal.settle(SECONDS_BETWEEN_PAGES)
    return taken


def spread(milliseconds: list[float]) -> dict[str, float]:
    """The median, the 99th percentile, and the longest."""
    ordered = sorted(milliseconds)
    p99 = ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    return {"p50": round(statistics.median(ordered), 1), "p99": round(p99, 1), "longest": round(ordered[-1], 1)}


# --- with the real engine ---------------------------------------------------------------------------------------------


def measure_engine(model: str, threads: int, rounds: int, home: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Tokens a second of the real engine, with the app and with a pipe, in turns; and what the app takes of them."""
    rates: dict[str, list[float]] = {"app": [], "pipe": []}
    environment = {**environment, "OMP_NUM_THREADS": str(threads)}
    home.mkdir(exist_ok=True)
    for number in range(rounds):
        recording = home / f"{threads}-{number}.jsonl"
        rates["app"].append(tokens_per_second(in_app(model, recording, environment)))
        rates["pipe"].append(tokens_per_second(through_pipe(model, environment)))
    losses = [1 - app / pipe for app, pipe in zip(rates["app"], rates["pipe"], strict=True)]
    every = {name: [round(rate, 1) for rate in found] for name, found in rates.items()}
    return {
        "model": Path(model).name,
        "decoder": DECODERS.get(model, PLAIN),
        "threads": threads,
        "tokens_per_second": every,
        "losses": [round(loss, 3) for loss in losses],
    }


def ask(environment: dict[str, str]) -> bytes:
    """The events of one answer."""
    command = [sys.executable, "-m", "ladechat", "ask", "--json", "--decoder", DECODERS["demo"], QUESTION]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout


def through_pipe(model: str, environment: dict[str, str]) -> list[bytes]:
    """The ends of all answers, as an engine writes them that nobody draws."""
    options = EngineOptions(model=model, settings=Settings(decoder=DECODERS.get(model, PLAIN)))
    engine = subprocess.Popen(
        options.command(),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert engine.stdin is not None and engine.stdout is not None
    finished = []
    with engine:
        for turn in range(1, ANSWERS + 1):
            messages = [Message(role="user", content=QUESTION)]
            engine.stdin.write(encode(Generate(turn=turn, messages=messages, max_new_tokens=MOST_TOKENS)))
            engine.stdin.flush()
            finished.append(next(line for line in engine.stdout if FINISHED in line))
            time.sleep(SECONDS_BETWEEN_ANSWERS)
        engine.stdin.close()
    return finished


def in_app(model: str, recording: Path, environment: dict[str, str]) -> list[bytes]:
    """The same of the app, each in a conversation of its own. It records them, which adds a little to its work."""
    options = {"--model": model, "--decoder": DECODERS.get(model, PLAIN), "--max-new-tokens": str(MOST_TOKENS)}
    command = [sys.executable, "-m", "ladechat", "--no-save", "--record", str(recording)]
    terminal = Terminal([*command, *(word for option in options.items() for word in option)], environment)
    try:
        terminal.wait_for("Ask something")
        terminal.settle()
        for turn in range(1, ANSWERS + 1):
            terminal.type(f"{QUESTION}\r")
            while recording.read_bytes().count(FINISHED) < turn:
                terminal.listen(0.1)
            terminal.settle()
            terminal.type(CLEAR)
            terminal.settle()
    finally:
        terminal.close()
    return [line for line in recording.read_bytes().split(b"\n") if FINISHED in line]


def tokens_per_second(finished: list[bytes]) -> float:
    """Of all answers but the first, in which everything is new to the engine, by its own clock."""
    ends = [json.loads(line) for line in finished[1:]]
    return float(sum(len(end["token_ids"]) for end in ends) / sum(end["decode_seconds"] for end in ends))


# --- the table --------------------------------------------------------------------------------------------------------


def show(report: dict[str, Any]) -> None:
    """The figures, each with its bar."""
    short, long = report["conversations"]
    table = Table("", f"{short['tokens']:,} tokens", f"{long['tokens']:,} tokens", "bar")
    table.add_row("frames a second", *(f"{one['frames_per_second']:.1f}" for one in (short, long)), "≥ 30")
    table.add_row("share of a core", *(f"{one['cpu_share']:.0%}" for one in (short, long)), "≤ 60 %")
    for name, kind, bar in (("key to echo", "key_ms", "p99 ≤ 50 ms"), ("page up or down", "page_ms", "like the first")):
        cells = (f"p50 {one[kind]['p50']:.0f} ms, p99 {one[kind]['p99']:.0f} ms" for one in (short, long))
        table.add_row(name, *cells, bar)
    lost = Table("lost to the app", "median", "rounds", "bar")
    for engine in report["engines"]:
        threads = counted(engine["threads"], "thread")
        rounds = ", ".join(f"{loss:.1%}" for loss in sorted(engine["losses"]))
        name = f"{engine['model']}, {engine['decoder']}, {threads} of {CORES}"
        lost.add_row(name, f"{statistics.median(engine['losses']):.1%}", rounds, "≤ 3 %")
    console().print(table, lost)


if __name__ == "__main__":
    main()
