"""Conversations with the bundled model, as it answers: nothing is chosen, nothing is left out."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.demo_model.evaluation.examine import Speaker

HEADING = """# Ten conversations with the bundled model

Written by `python -m tools.demo_model transcripts`. The questions were fixed before any answer was seen, answers are
greedy, and all of them are here.
"""


def transcripts(folder: Path) -> Iterator[str]:
    """A checkpoint's answers to the conversations of conversations.toml, as Markdown."""
    with (Path(__file__).parent / "conversations.toml").open("rb") as file:
        wanted = tomllib.load(file)["conversations"]
    speaker = Speaker(folder)
    yield HEADING
    for conversation in wanted:
        yield f"\n## {conversation['title']}\n"
        for turn, reply in zip(conversation["turns"], speaker.converse(conversation["turns"]), strict=True):
            note = "" if reply.ended else " *(cut off)*"
            yield f"\n> {turn}\n\n{reply.text}{note}\n"
