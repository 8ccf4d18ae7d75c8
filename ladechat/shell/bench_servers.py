"""`ladechat bench --server URL`: the bench's questions, each asked of one server after another."""

import asyncio
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ladechat.bench.options import BenchRefused
from ladechat.bench.questions import read_questions
from ladechat.engine_options import EngineOptions
from ladechat.files import check_replaceable
from ladechat.interrupts import INTERRUPTED
from ladechat.protocol import Message
from ladechat.refusing import fail
from ladechat.session.command_engine import engine_of
from ladechat.session.race import Lane
from ladechat.session.server_race import MeasuringServers
from ladechat.shell.race import in_columns
from ladechat.terminal import Status, say
from ladechat.widgets.formatting import counted

FAILED = 1
HEADINGS = ("server", "tokens", "passes", "tokens a pass", "tokens/s", "first token")
UNKNOWN = "–"


@dataclass(frozen=True)
class Served:
    """What a server did with all questions; None for what it does not tell.

    Attributes:
        tokens, passes, tokens_a_pass: of all answers.
        tokens_a_second: as they came here, without the first pass of each answer, whose time is the prompt's.
        first_token_ms: the median time until the first token.
    """

    server: str
    tokens: int | None
    passes: int | None
    tokens_a_pass: float | None
    tokens_a_second: float | None
    first_token_ms: float

    @classmethod
    def of(cls, lanes: Sequence[Lane]) -> "Served":
        """Sum up the answers of one server."""
        counts, steps = [lane.tokens for lane in lanes], [lane.passes for lane in lanes]
        tokens = sum(count for count in counts if count is not None) if None not in counts else None
        passes = sum(count for count in steps if count is not None) if None not in steps else None
        seconds, timed = sum(lane.seconds for lane in lanes), [lane.timed_tokens for lane in lanes]
        rate = sum(count for count in timed if count is not None) / seconds if seconds and None not in timed else None
        first = statistics.median(1000 * lane.finished.prefill_seconds for lane in lanes if lane.finished is not None)
        return cls(lanes[0].label, tokens, passes, tokens / passes if tokens and passes else None, rate, first)

    def row(self) -> tuple[str, ...]:
        """Return its figures as text, by `HEADINGS`."""
        counts = (UNKNOWN if number is None else f"{number:,}" for number in (self.tokens, self.passes))
        per_pass = UNKNOWN if self.tokens_a_pass is None else f"{self.tokens_a_pass:.2f}"
        rate = UNKNOWN if self.tokens_a_second is None else f"{self.tokens_a_second:,.1f}"
        return self.server, *counts, per_pass, rate, f"{self.first_token_ms:,.0f} ms"


def run(
    engines: Sequence[EngineOptions], sources: Sequence[str], max_new_tokens: int, rounds: int, file: Path | None
) -> int:
    """Ask each server, by an engine for each, the questions of some kinds and files `rounds` times; print the table and
    write the file. Return 1 on failure, 130 after Ctrl+C, else 0.
    """
    try:
        questions = [question.turns[0] for question in read_questions(sources)]
        if file is not None:
            check_replaceable(file)
    except BenchRefused as refused:
        fail(str(refused))
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror or error}; give --json another file.")
    status = Status()
    try:
        answers = asyncio.run(_asked(engines, questions * rounds, max_new_tokens, status.show))
    except KeyboardInterrupt:
        say("Stopped; nothing was written.")
        return INTERRUPTED
    finally:
        status.clear()
    if isinstance(answers, str):
        say(answers)
        return FAILED
    served = [Served.of(lanes) for lanes in zip(*answers, strict=True)]
    print("\n".join(in_columns([HEADINGS, *(one.row() for one in served)])))
    if len(served) > 1:
        equal = sum(len({lane.text for lane in lanes}) == 1 for lanes in answers)
        print(f"\n{equal} of {counted(len(answers), 'question')}: all texts equal")
    return 0 if file is None else _write(served, file)


async def _asked(
    engines: Sequence[EngineOptions], questions: Sequence[str], max_new_tokens: int, show: Callable[[str], None]
) -> list[list[Lane]] | str:
    """Return the answers of all servers to each question; or why one could not answer."""
    answers = []
    for number, question in enumerate(questions, start=1):
        show(f"question {number} of {len(questions)}")
        asked = [Message(role="user", content=question)]
        race = MeasuringServers([(one.named, engine_of(one)) for one in engines], asked, max_new_tokens)
        await race.run()
        if race.failure is not None:
            return race.failure
        answers.append(race.lanes)
    return answers


def _write(served: Sequence[Served], file: Path) -> int:
    figures = json.dumps({"servers": [vars(one) for one in served]}, indent=1)
    try:
        file.write_text(figures + "\n", encoding="utf-8")
    except OSError as error:
        say(f"{file} cannot be written: {error.strerror or error}; give --json another file.")
        return FAILED
    return 0
