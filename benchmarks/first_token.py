"""What drafters add to the first token of an answer, and to each step, as a conversation grows.

Run as `python -m benchmarks.first_token [--lengths 1000,4000,16000,30000] [--json FILE]`. No model runs: a text is made
up by dice, with phrases that come again as they do in talk. Each drafter is timed, in processor time, from a prompt to
its first proposal: of a first turn; of the turn after it, 200 tokens longer; of the first one again, as after Ctrl+R;
and of one whose last 200 tokens were changed. Then a step is timed in which nothing is found. Medians over rounds;
garbage is collected between them.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.common import command_line, written
from ladechat.decoder.drafters.drafter import Drafter, Room
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.drafters.pool import PoolDrafter
from ladechat.decoder.drafters.prompt_lookup import PromptLookupDrafter
from ladechat.decoder.drafters.recycling import RecyclingDrafter
from ladechat.decoder.drafters.suffix import SuffixDrafter

DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "pool, N 3": lambda: PoolDrafter(NGramPool(), 3, 5),
    "pool, N 5": lambda: PoolDrafter(NGramPool(), 5, 15),
    "suffix": SuffixDrafter,
    "prompt lookup": PromptLookupDrafter,
    "recycling": RecyclingDrafter,
}
VOCABULARY = 30_000
NEVER_BEFORE = range(VOCABULARY, VOCABULARY + 10_000)
"""Tokens that stand nowhere in a text."""
MORE = 200
"""Tokens of an answer and the next question."""
STEPS = 50
ROOM = Room(1000, 1000)
TURNS = ("first turn", "second turn", "again", "changed")


def main() -> None:
    """Measure, print a table, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--lengths", default="1000,4000,16000,30000", help="of prompts, in tokens")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lengths = [int(length) for length in arguments.lengths.split(",")]
    gc.disable()
    rows = [
        {"drafter": name, "tokens": length, **measured(make, length, arguments.rounds)}
        for name, make in DRAFTERS.items()
        for length in lengths
    ]
    table = Table("drafter", "tokens", *TURNS, "step", title="Milliseconds of processor time")
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=100).print(table)
    written({"rounds": arguments.rounds, "milliseconds": rows}, arguments.json)


def measured(make: Callable[[], Drafter], length: int, rounds: int) -> dict[str, float]:
    """Milliseconds of the turns, and of a step: medians over rounds, after one to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in (*TURNS, "step")}
    for number in range(rounds + 1):
        gc.collect()
        text = talk(random.Random(number), length + MORE)
        changed = [*text[: length - MORE], *reversed(text[length - MORE : length])]
        drafter = make()
        for name, prompt in zip(TURNS, (text[:length], text, text[:length], changed), strict=True):
            taken[name].append(milliseconds(drafter, prompt))
        taken["step"].append(step(drafter, changed))
    return {name: statistics.median(each[1:]) for name, each in taken.items()}


def milliseconds(drafter: Drafter, prompt: list[int]) -> float:
    """From a prompt to the first proposal."""
    own = list(prompt)
    began = time.process_time()
    drafter.begin(own, len(own))
    drafter.propose(ROOM)
    return 1000 * (time.process_time() - began)


def step(drafter: Drafter, prompt: list[int]) -> float:
    """A proposal after a token that stood nowhere before."""
    text = list(prompt)
    drafter.begin(text, len(text))
    began = time.process_time()
    for token in NEVER_BEFORE[:STEPS]:
        text.append(token)
        drafter.propose(ROOM)
    return 1000 * (time.process_time() - began) / STEPS


def talk(dice: random.Random, length: int) -> list[int]:
    """A text: new tokens, some far oftener than others, and phrases from earlier in it."""
    text: list[int] = []
    while len(text) < length:
        if text and dice.random() < 0.1:
            start = dice.randrange(len(text))
            text += text[start : start + dice.randint(2, 20)]
        text.append(min(int(dice.paretovariate(0.3)), VOCABULARY - 1))
    return text[:length]


if __name__ == "__main__":
    main()
