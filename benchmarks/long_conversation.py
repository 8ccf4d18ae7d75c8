"""How long `ladechat --continue` takes with a conversation of 2,000 turns: until its end is seen, and until all of it
is laid out.

The clock runs from the start of the program in a pseudo terminal of 100 × 30 (`benchmarks.first_frame`). A conversation
of two turns is opened in turns with it: what that takes is the program's own. How late the event loop is at most while
the messages above are laid out, and so a key or a frame, is seen in an app without a terminal, beside the same app
without a conversation. Run it as

    python -m benchmarks.long_conversation [--turns 2000] [--words 60] [--rounds 5] [--json FILE]
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from textual.app import App, ComposeResult

from benchmarks.first_frame import first_frame_seconds
from benchmarks.long_recording import LOOK_SECONDS, spread
from ladechat.bench.machine import describe
from ladechat.garbage import collect_what_is_new
from ladechat.protocol import Exchange
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.flow import UNKNOWN, Ink
from ladechat.widgets.transcript.block import Kind
from ladechat.widgets.transcript.transcript import Transcript

LAST = "the-last-answer"
WORDS = ("pool", "window", "guess", "token", "draft", "pass", "model", "n-gram", "cache", "what", "you", "see")


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--words", type=int, default=60, help="of an answer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = {f"{turns:,} turns": (Path(folder) / str(turns), turns) for turns in (2, arguments.turns)}
        for home, turns in homes.values():
            store = ConversationStore(home / "ladechat" / "conversations")
            for exchange in exchanges(turns, arguments.words):
                store.add(exchange)
            store.begin_new()
        seconds: dict[str, list[float]] = {name: [] for name in homes}
        for number in range(-1, arguments.rounds):  # the first round only warms the file cache
            for name, (home, _) in homes.items():
                command = ["env", f"XDG_DATA_HOME={home}", sys.executable, "-m", "ladechat", "--continue"]
                took = first_frame_seconds(command, LAST.encode())
                if number >= 0:
                    seconds[name].append(took)
    report = {
        "machine": describe(),
        "words_of_an_answer": arguments.words,
        "end_is_seen_ms": {name: spread(taken) for name, taken in seconds.items()},
        "after_the_first_frame": asyncio.run(laid_out(exchanges(arguments.turns, arguments.words))),
        "without_a_conversation": asyncio.run(laid_out(iter(()))),
    }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def exchanges(turns: int, words: int) -> Iterator[Exchange]:
    """A conversation that ends in `LAST`."""
    dice = random.Random(0)
    for turn in range(turns):
        answer = " ".join(dice.choices(WORDS, k=words)) if turn < turns - 1 else LAST
        yield Exchange(question=f"Question {turn}?", answer=answer, token_ids=[], model="demo", decoder="auto")


def said(one: Exchange) -> Iterator[tuple[Kind, str, str, Ink]]:
    """A question and its answer, as messages."""
    yield "user", "You", one.question, UNKNOWN
    yield "model", one.model, one.answer, UNKNOWN


class Alone(App[None]):
    """A conversation and nothing else."""

    def compose(self) -> ComposeResult:
        yield Transcript()


async def laid_out(conversation: Iterator[Exchange]) -> dict[str, float]:
    """Seconds until all of it is laid out after it was opened, at least one, and how late the event loop was."""
    collect_what_is_new()  # as the app does
    app, late = Alone(), list[float]()
    async with app.run_test(size=(100, 30)):
        transcript = app.query_one(Transcript)
        messages: list[tuple[Kind, str, str, Ink]] = [message for one in conversation for message in said(one)]
        began = time.perf_counter()
        transcript.open(messages)
        opened = time.perf_counter() - began
        seconds = 0.0
        while not transcript.laid_out or time.perf_counter() - began < 1:
            before = time.perf_counter()
            await asyncio.sleep(LOOK_SECONDS)
            late.append(time.perf_counter() - before - LOOK_SECONDS)
            seconds = seconds if transcript.laid_out else time.perf_counter() - began
    return {
        "opened_ms": round(1000 * opened, 1),
        "seconds": round(seconds, 2),
        "longest_stall_ms": round(1000 * max(late), 1),
        "median_of_stalls_ms": round(1000 * statistics.median(late), 2),
        "stalls_over_31_ms": sum(each > 1 / 32 for each in late),
    }


if __name__ == "__main__":
    main()
