"""How long the stream pauses where decoder, W, N and G change all the time: the longest wait between two steps.

Run as `python -m benchmarks.live_changes [--model FOLDER] [--changes 1000] [--json FILE]`.
They change at random before every third step or so, as when a slider is dragged; every answer is compared with plain
decoding.
"""

import argparse
import json
import random
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.demo_decoding import BUNDLED
from ladechat.bench.machine import describe
from ladechat.bench.options import KINDS
from ladechat.bench.questions import read_questions
from ladechat.engine.turn import Emit, Service, answer
from ladechat.model.kernels.build import Build
from ladechat.model.load import load
from ladechat.protocol import Event, Generate, Message, Prefilling, Settings, TurnFinished, Value

MAX_NEW_TOKENS = 200
EVERY = 3


class Dragging:
    """Changes settings while an answer is written, but none of a plain one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._dice = random.Random(0)
        self.active = False
        self.changes = 0
        self.times: list[float] = []
        """When it was asked: before the prompt, after each chunk of it, and after each step."""

    def take_commands(self) -> bool:
        """See `ladechat.engine.turn.Listener`."""
        self.times.append(time.perf_counter())
        return False

    def until_due(self, _emit: Emit) -> float:
        """See `ladechat.engine.turn.Listener`."""
        dice = self._dice
        if not self.active or dice.randrange(EVERY):
            return 0.0
        window, ngram, guesses = dice.randint(1, 20), dice.randint(2, 7), dice.randint(0, 20)
        parameters: dict[str, Value] = {"window": window, "ngram": ngram, "guesses": guesses}
        decoder = "auto" if dice.random() < 0.2 else "lookahead"
        self._service.decoders.apply(Settings(decoder=decoder, parameters=parameters))
        self.changes += 1
        return 0.0


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    loaded = load(
        arguments.model, arguments.model.name, "cpu", "float32", lambda _: None, lambda _: None, kernels=Build()
    )
    service = Service.of(loaded, Settings())
    listener = Dragging(service)
    waits: list[float] = []
    questions = [turn for question in read_questions(KINDS) for turn in question.turns]
    for number in range(10**9):
        question = questions[number % len(questions)]
        expected = _answer(service, listener, question, Settings(decoder="autoregressive"), [])
        found = _answer(service, listener, question, Settings(), waits)
        assert found == expected, question
        if listener.changes >= arguments.changes:
            break
    waits.sort()
    report = {
        "machine": describe(),
        "model": arguments.model.name,
        "changes": listener.changes,
        "steps": len(waits),
        "answers": number + 1,
        "same_text": True,
        "ms_between_steps": {
            "median": round(1000 * waits[len(waits) // 2], 2),
            "99 of 100": round(1000 * waits[len(waits) * 99 // 100], 2),
            "longest": round(1000 * waits[-1], 2),
        },
    }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _answer(service: Service, listener: Dragging, question: str, settings: Settings, waits: list[float]) -> list[int]:
    """The tokens of an answer. The seconds between its steps are added to `waits`."""
    token_ids: list[int] = []
    asked_before = 1

    def heard(*events: Event) -> None:
        nonlocal asked_before
        for event in events:
            if isinstance(event, Prefilling):
                asked_before += 1
            elif isinstance(event, TurnFinished):
                token_ids.extend(event.token_ids)

    listener.times.clear()
    listener.active = settings.decoder != "autoregressive"
    service.decoders.apply(settings)
    message = Message(role="user", content=question)
    answer(service, Generate(turn=1, messages=[message], max_new_tokens=MAX_NEW_TOKENS), heard, listener)
    waits += [after - before for before, after in pairwise(listener.times[asked_before:])]
    return token_ids


if __name__ == "__main__":
    main()
