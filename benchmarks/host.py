"""How much of a step is not its pass: pool, tree, layout, acceptance, text and the event, written where nobody reads.

Run as `python -m benchmarks.host [--model FOLDER] [--json FILE]`, when `ladechat tune --passes compile` has compiled
the passes. Decoders take turns, question by question.
"""

import argparse
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.demo_decoding import BUNDLED
from benchmarks.speed_contenders import passes_of
from ladechat.bench.machine import describe
from ladechat.bench.options import KINDS
from ladechat.bench.questions import read_questions
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
    """Nobody stops or changes anything."""

    def stop_wanted(self) -> bool:
        """See `ladechat.engine.turn.Listener`."""
        return False

    def apply_changes(self, _emit: Emit) -> None:
        """See `ladechat.engine.turn.Listener`."""


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    loaded = load(arguments.model, arguments.model.name, "cpu", "float32", lambda _: None, lambda _: None)
    ways: Any = passes_of(loaded)
    questions = [turn for question in read_questions(KINDS) for turn in question.turns]
    found: dict[str, list[Step]] = defaultdict(list)
    collect_seldom()  # as an engine does
    for way, passes in ways.items():
        loaded.runner.compiled = passes
        service = Service.of(loaded, Settings())
        for _ in service.texts.learn(loaded.vocabulary):  # an engine does that while nobody asks anything
            pass
        for question in questions:
            for name, settings in DECODERS.items():
                service.decoders.apply(settings)
                # The first step takes what is done once for an answer.
                found[f"{name}, {way}"] += steps_of(service, question)[1:]
    report = {
        "machine": describe(),
        "model": arguments.model.name,
        "steps": {name: figures(steps) for name, steps in found.items()},
    }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def steps_of(service: Service, question: str) -> list[Step]:
    """The steps of an answer, written as an engine writes them."""
    steps: list[Step] = []
    with Path(os.devnull).open("wb") as nowhere:
        stream = EventStream(nowhere.fileno())

        def emit(event: Event) -> None:
            stream.emit(event)
            if isinstance(event, Step):
                steps.append(event)

        request = Generate(turn=1, messages=[Message(role="user", content=question)], max_new_tokens=MAX_NEW_TOKENS)
        answer(service, request, emit, Undisturbed())
    return steps


def figures(steps: list[Step]) -> dict[str, float]:
    """What half of the steps take at most, in all and besides their passes."""
    besides = [step.timing.step_ms - step.timing.forward_ms for step in steps]
    share = [part / step.timing.step_ms for part, step in zip(besides, steps, strict=True)]
    return {
        "steps": len(steps),
        "slots": round(statistics.mean(step.timing.slots for step in steps), 1),
        "step_ms": round(statistics.median(step.timing.step_ms for step in steps), 3),
        "besides_ms": round(statistics.median(besides), 3),
        "share": round(statistics.median(share), 3),
    }


def page_table(report: Mapping[str, Any]) -> str:
    """The figures as a table of a page."""
    rows = ["| | slots | a step, ms | besides its pass, ms | part |", "|---|---|---|---|---|"]
    for name, of in report["steps"].items():
        numbers = f"{of['slots']:.1f} | {of['step_ms']:.2f} | {of['besides_ms']:.2f} | {100 * of['share']:.0f} %"
        rows.append(f"| {name} | {numbers} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
