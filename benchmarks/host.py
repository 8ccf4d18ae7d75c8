"""How much of a step is not its pass: pool, tree, layout, acceptance, text and the event, written where nobody reads.

Run as `python -m benchmarks.host [--model FOLDER] [--json FILE]`, when `ladechat tune --passes compile` has compiled
the passes. Decoders take turns, question by question.
"""

import argparse
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.demo_decoding import BUNDLED
from benchmarks.speed_contenders import passes_of
from ladechat.bench.machine import describe
from ladechat.bench.options import KINDS
from ladechat.bench.questions import read_questions
from ladechat.decoder.step import Step as StepOfDecoder
from ladechat.engine.stream import EventStream
from ladechat.engine.turn import Emit, Service, answer
from ladechat.garbage import collect_seldom
from ladechat.model.loading import load
from ladechat.protocol import Event, Generate, Message, Settings, Step

MAX_NEW_TOKENS = 64
DECODERS = {
    "plain": Settings(decoder="autoregressive"),
    "lookahead 5,3,5": Settings(),
    "lookahead 15,5,15": Settings(window=15, ngram=5, guesses=15),
    "auto": Settings(auto=True),
}


class Undisturbed:
    """Nobody stops or changes anything.

    Attributes:
        asked_at: when a step was over the last time.
        told_at: when one was told.
    """

    asked_at = told_at = 0.0

    def stop_wanted(self) -> bool:
        """See `ladechat.engine.turn.Listener`."""
        self.asked_at = time.perf_counter()
        return False

    def apply_changes(self, _emit: Emit) -> None:
        """See `ladechat.engine.turn.Listener`."""


@dataclass
class Found:
    """The steps of answers.

    Attributes:
        behind_ms: the time behind the last step of each answer until all were told: none of them has taken it.
        timed_ms: what passes in these steps have taken that `auto` only wanted to time.
        learnt_ms: what the decoder did behind the last token of each answer, when nobody waited.
        answers: how many there were.
    """

    steps: list[Step] = field(default_factory=list)
    behind_ms: float = 0.0
    timed_ms: float = 0.0
    learnt_ms: float = 0.0
    answers: int = 0


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    loaded = load(arguments.model, arguments.model.name, "cpu", "float32", lambda _: None, lambda _: None)
    ways: Any = passes_of(loaded)
    questions = [turn for question in read_questions(KINDS) for turn in question.turns]
    found: dict[str, Found] = defaultdict(Found)
    collect_seldom()  # as an engine does
    for way, passes in ways.items():
        loaded.runner.compiled = passes
        services = {name: Service.of(loaded, settings) for name, settings in DECODERS.items()}  # each has its own pool
        for service in services.values():
            for _ in service.texts.learn(loaded.vocabulary):  # an engine does that while nobody asks anything
                pass
        for question in questions:
            for name, service in services.items():
                answer_to(question, service, found[f"{name}, {way}"])
    report = {
        "machine": describe(),
        "model": arguments.model.name,
        "steps": {name: figures(of) for name, of in found.items()},
    }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def answer_to(question: str, service: Service, found: Found) -> None:
    """Add the steps of an answer, written as an engine writes them."""
    steps: list[Step] = []
    listener, decoders = Undisturbed(), service.decoders
    timed_before = decoders.timed_seconds
    with Path(os.devnull).open("wb") as nowhere:
        stream = EventStream(nowhere.fileno())

        def emit(*events: Event) -> None:
            stream.emit(*events)
            nonlocal timed_before
            told = [event for event in events if isinstance(event, Step)]
            if told:
                timed_before = timed_before if steps else decoders.timed_seconds
                listener.told_at = time.perf_counter()
            steps.extend(told)

        request = Generate(turn=1, messages=[Message(role="user", content=question)], max_new_tokens=MAX_NEW_TOKENS)
        with end_timed(decoders.chosen(), found):
            answer(service, request, emit, listener)
    found.answers += 1
    found.behind_ms += 1000 * (listener.told_at - listener.asked_at)
    found.timed_ms += 1000 * (decoders.timed_seconds - timed_before)
    found.steps += steps[1:]  # the first takes what is done once for an answer


@contextmanager
def end_timed(decoder: Any, found: Found) -> Iterator[None]:
    """Find out how long it works on when its last token is there and it is let go."""
    run = decoder.run

    def timed(*arguments: Any) -> Iterator[StepOfDecoder]:
        steps = run(*arguments)
        try:
            for step in steps:  # noqa: UP028  # with `yield from` they would be closed before the time is taken
                yield step
        finally:
            began = time.perf_counter()
            steps.close()
            found.learnt_ms += 1000 * (time.perf_counter() - began)

    with patch.object(decoder, "run", timed):
        yield


def figures(found: Found) -> dict[str, float]:
    """What steps take on average, in all and besides passes: some take what is done for several together."""
    steps = found.steps
    step_ms = statistics.mean(step.timing.step_ms for step in steps) + found.behind_ms / len(steps)
    timed_ms = found.timed_ms / len(steps)
    besides_ms = step_ms - statistics.mean(step.timing.forward_ms for step in steps) - timed_ms
    return {
        "steps": len(steps),
        "slots": round(statistics.mean(step.timing.slots for step in steps), 1),
        "step_ms": round(step_ms, 3),
        "timed_ms": round(timed_ms, 3),
        "besides_ms": round(besides_ms, 3),
        "share": round(besides_ms / step_ms, 3),
        "behind_answer_ms": round(found.learnt_ms / found.answers, 3),
    }


def page_table(report: Mapping[str, Any]) -> str:
    """The figures as a table of a page."""
    heads = ("slots", "a step, ms", "passes only timed, ms", "besides passes, ms", "part", "behind an answer, ms")
    rows = [f"| | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, of in report["steps"].items():
        times = " | ".join(f"{of[field]:.3f}" for field in ("step_ms", "timed_ms", "besides_ms"))
        numbers = f"{of['slots']:.1f} | {times} | {100 * of['share']:.1f} % | {of['behind_answer_ms']:.2f}"
        rows.append(f"| {name} | {numbers} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
