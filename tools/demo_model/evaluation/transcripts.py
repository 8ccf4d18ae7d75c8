"""Ten conversations with a checkpoint, as it answers: nothing is chosen, nothing is left out.

Run as `python -m tools.demo_model.evaluation.transcripts FOLDER [FILE]`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.demo_model.dialogue import read
from tools.demo_model.evaluation.speaker import Speaker

FILE = Path(__file__).parents[3] / "docs" / "demo-model" / "transcripts.md"

HEADING = """# Ten conversations with the bundled model

Written by `python -m tools.demo_model.evaluation.transcripts`. What is asked was fixed before any answer was seen
(`tools/demo_model/evaluation/conversations.toml`); answers are greedy, so that no seed could be chosen; and all of them
are here.
"""


def conversations() -> list[dict[str, Any]]:
    """Titles and turns."""
    found: list[dict[str, Any]] = read("evaluation/conversations")["conversations"]
    return found


def transcripts(folder: Path) -> Iterator[str]:
    """A checkpoint's answers to the conversations of conversations.toml, as Markdown, piece by piece."""
    speaker = Speaker(folder)
    yield HEADING
    for number, conversation in enumerate(conversations(), start=1):
        yield f"\n## {number}. {conversation['title']}\n"
        for turn, reply in zip(conversation["turns"], speaker.converse(conversation["turns"]), strict=True):
            yield f"\n> {turn}\n\n{reply.text}\n" + ("" if reply.ended else "\n*(cut off here)*\n")


def main() -> None:
    """Write the transcripts of one checkpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkpoint")
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    arguments.file.write_text("".join(transcripts(arguments.folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
