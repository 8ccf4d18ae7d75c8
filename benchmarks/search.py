"""What a letter takes, in processor time, that is typed to search in 5,000 conversations of 40 turns.

The list of conversations that Ctrl+O opens runs without a terminal. Each phrase is typed letter by letter, and taken
back again. The clock is that of the process, from a letter to the screen that shows what is found. The list is opened
twice: the first time the index is made. Run it as

    python -m benchmarks.search [--conversations 5000] [--turns 40] [--words 60] [--json FILE]
"""

import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from benchmarks.common import command_line, spread, written
from ladechat import app
from ladechat.garbage import collect_what_is_new
from ladechat.protocol import Exchange, encode
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.terminal.app_messages import AppWithMessages
from ladechat.session.conversations.saved import Answered, Begun
from ladechat.session.conversations.store import ConversationStore

WORDS = ("pool", "window", "guess", "token", "draft", "pass", "model", "n-gram", "cache", "what", "you", "see")
PHRASES = ("token draft pass", "the n-gram pool", "question 7", "nowhere to be found", "e")


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--conversations", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--words", type=int, default=60, help="of an answer")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for conversation in range(arguments.conversations):
            said = exchanges(conversation, arguments.turns, arguments.words)
            lines = [Begun(), *(Answered(when="2030-01-01T12:00:00", exchange=one) for one in said)]
            Path(folder, f"{conversation:06}.jsonl").write_bytes(b"".join(map(encode, lines)))
        _, first = asyncio.run(typed(ConversationStore(Path(folder)), ()))
        letters, opened = asyncio.run(typed(ConversationStore(Path(folder)), PHRASES))
    figures = {
        "conversations": arguments.conversations,
        "turns": arguments.turns,
        "words_of_an_answer": arguments.words,
        "index_made_ms": round(first, 1),
        "list_opened_ms": round(opened, 1),
        "letter_ms": {phrase: spread([each / 1000 for each in taken]) for phrase, taken in letters.items()},
        "slowest_letter_ms": round(max(each for taken in letters.values() for each in taken), 1),
        "median_letter_ms": round(statistics.median(each for taken in letters.values() for each in taken), 1),
    }
    print(json.dumps(written(figures, arguments.json), indent=1))


def exchanges(conversation: int, turns: int, words: int) -> list[Exchange]:
    """One conversation, of words that others have too."""
    dice = random.Random(conversation)
    return [
        Exchange(
            question=f"Question {turn} of {conversation}?",
            answer=" ".join(dice.choices(WORDS, k=words)),
            token_ids=[],
            model="demo",
            decoder="auto",
        )
        for turn in range(turns)
    ]


class Alone(AppWithMessages):
    """The list, in the app's styles."""

    CSS_PATH = Path(app.__file__).with_name("app.tcss")


async def typed(store: ConversationStore, phrases: Sequence[str]) -> tuple[dict[str, list[float]], float]:
    """Return the milliseconds of each letter, by phrase, and those until the list was there."""
    collect_what_is_new()
    host, screen = Alone(), ConversationsScreen(store)
    taken: dict[str, list[float]] = {}
    async with host.run_test(size=(100, 30)) as pilot:
        before = time.process_time()
        await host.push_screen(screen)
        while not screen._found:  # noqa: ASYNC110 - the screen sends no event for it
            await asyncio.sleep(0.01)
        opened = 1000 * (time.process_time() - before)
        for phrase in phrases:
            taken[phrase] = [await press(pilot, letter) for letter in phrase]
            taken[phrase] += [await press(pilot, "backspace") for _ in phrase]
    return taken, opened


async def press(pilot: Pilot[Any], key: str) -> float:
    """Press a key, and return the milliseconds of processor time until the screen shows what it brings."""
    before = time.process_time()
    await pilot.press({" ": "space", "-": "minus"}.get(key, key))
    await pilot.pause()
    return 1000 * (time.process_time() - before)


if __name__ == "__main__":
    main()
