"""What auto's choices are worth, the machine left out: it and fixed settings, timed by a clock that is made up.

Run as `python -m benchmarks.choices [--json FILE] [--kinds code ...]`. The bundled model answers, with compiled passes
if they are there, but time is what a machine of `benchmarks.machines` would take: so many milliseconds for a pass of T
slots, so many microseconds for what is done besides. What comes out is the same on every machine and in every hour, so
that it says whether a choice was good, which a clock on the wall says with an error of some percent; how fast anything
is says `benchmarks.speed`. What auto does behind the last token of an answer counts here. Left out is that a decoder
with fixed settings looks for guesses where it finds none. A session is all prompts of a kind, as there, or some 30
questions of one kind that the corpus generator of the bundled model asks, with answers of up to 160 tokens, as in an
app.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from torch import Tensor

from benchmarks.demo_decoding import BUNDLED
from benchmarks.machines import MACHINES, Cache, Machine
from benchmarks.speed import kinds_of
from benchmarks.speed_contenders import GRID, passes_of
from benchmarks.speed_prompts import random_prompts
from ladechat.bench.options import KINDS
from ladechat.bench.prompts import Prompt, make_prompts
from ladechat.bench.questions import Question, read_questions
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import Guess
from ladechat.decoder.picker import Pick, Pool, Rest, Ridden
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits
from ladechat.decoder.tuned import TunedDecoder
from ladechat.decoder.verify_mask import StepLayout
from ladechat.model.cost import PassCosts
from ladechat.model.loading import LoadedModel, load
from tools.demo_model.conversations import WRITERS

SHORT, LONG = 64, 160
QUESTIONS = 30


class OnClock:
    """A runner whose passes, and what is done besides, take what they would on a machine."""

    def __init__(self, runner: Runner, machine: Machine) -> None:
        self._runner, self._machine, self._slots = runner, machine, 1
        self._cache = Cache(machine)
        self.now = 0.0
        self.plain_only = runner.plain_only
        self.context_length = runner.context_length
        self.compiled = _Sizes(sorted(machine.passes)) if machine.filled_up else None

    @property
    def tokens(self) -> Sequence[int]:
        """See `Runner`, as of the others."""
        return self._runner.tokens

    @property
    def reach(self) -> int:
        return self._runner.reach

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        yield from self._runner.prefill(tokens)

    def forward(self, layout: StepLayout) -> Tensor:
        self._slots = len(layout)
        self.now += self._cache.slower(self._slots) + self._machine.pass_seconds(self._slots)
        return self._runner.forward(layout)

    def read(self, logits: Tensor) -> tuple[list[int], list[float] | None]:
        return self._runner.read(logits)

    def keep(self, slots: Sequence[int]) -> None:
        if slots:  # else a pass was only timed
            self.now += self._machine.step_seconds(self._slots) - self._machine.pass_seconds(self._slots)
        self._runner.keep(slots)

    def settle(self) -> None:
        """Begin with all weights where they are behind plain steps."""
        self._cache = Cache(self._machine)

    def works(self, microseconds: float) -> None:
        """So much else was done."""
        self.now += microseconds / 1e6
        self._cache.away(microseconds / 1e6)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Meanwhile clocks say what time it is on that machine."""
        with (
            patch.object(time, "perf_counter", self._time),
            patch("ladechat.decoder.lookahead.perf_counter", self._time),
        ):
            yield

    def _time(self) -> float:
        return self.now


@dataclass
class _Sizes:
    """What a `PassCosts` asks of compiled passes."""

    sizes: list[int]

    def prepare(self) -> None: ...


class AutoOnClock(TunedDecoder):
    """Auto, whose own work takes what it would."""

    def __init__(self, runner: OnClock, machine: Machine) -> None:
        costs = PassCosts(runner)
        costs.refresh()
        super().__init__(LookaheadDecoder(runner), costs)
        self._clock, self._machine = runner, machine

    def rested(self, rest: Rest, pool: Pool) -> None:
        """See `Picker`."""
        super().rested(rest, pool)
        self._clock.works(self._machine.behind_us)

    def rode(self, ridden: Sequence[Ridden]) -> None:
        """See `Picker`."""
        super().rode(ridden)
        self._clock.works(self._machine.rode_us + len(ridden) * self._machine.ridden_us)

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """See `Picker`."""
        picked = super().pick(guesses)
        self._clock.works(self._machine.asked_us)
        return picked


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kinds", nargs="+", help="only these")
    arguments = parser.parse_args()
    loaded = load(BUNDLED, BUNDLED.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    loaded.runner.compiled = passes_of(loaded).get("compiled")  # which give the same tokens sooner
    sessions = {kind: some for kind, some in sessions_of(loaded).items() if kind in (arguments.kinds or [kind])}
    report: dict[str, Any] = {name: {} for name in MACHINES}
    for kind, prompts in sessions.items():
        for name, found in of_session(loaded, prompts).items():
            report[name][kind] = found
            print(f"{kind:12} {name:22} {found}", flush=True)
    print("\n", page_table(report), sep="")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def sessions_of(loaded: LoadedModel) -> dict[str, list[Prompt]]:
    """Prompts by their kind: those of `benchmarks.speed`, and those of the corpus generator."""
    prompts = make_prompts(loaded, read_questions(KINDS), SHORT, tick=lambda: None)
    prompts += random_prompts(loaded, Limits(SHORT, loaded.eos_ids))
    prompts += make_prompts(loaded, list(_generated()), LONG, tick=lambda: None)
    return {kind: [prompt for prompt in prompts if prompt.kind == kind] for kind in kinds_of(prompts)}


def _generated() -> Iterator[Question]:
    for kind, (write, _) in WRITERS.items():
        rng, asked = Random(f"choices {kind}"), 0
        while asked < QUESTIONS:
            turns = tuple(exchange.question for exchange in write(rng))
            asked += len(turns)
            yield Question(f"long: {kind}", f"{kind} {asked}", turns)


def of_session(loaded: LoadedModel, prompts: Sequence[Prompt]) -> dict[str, dict[str, Any]]:
    """For each machine: the best fixed settings there, their speed by that of plain decoding, and auto's by theirs."""
    slots = {",".join(map(str, numbers)): _slots_of_fixed(loaded, prompts, numbers) for numbers in GRID}
    slots["plain"] = [1] * sum(len(prompt.expected) - 1 for prompt in prompts)
    found = {}
    for name, machine in MACHINES.items():
        seconds = {way: machine.seconds(of) for way, of in slots.items()}
        best = min(seconds, key=lambda way: seconds[way])
        auto = _seconds_of_auto(loaded, prompts, machine)
        gained = {"best_to_plain": seconds["plain"] / seconds[best], "auto_to_best": seconds[best] / auto}
        found[name] = {"best": best, **{key: round(value, 3) for key, value in gained.items()}}
    return found


def _slots_of_fixed(loaded: LoadedModel, prompts: Sequence[Prompt], numbers: tuple[int, int, int]) -> list[int]:
    """Of all steps but the first of each answer. They do not depend on what a machine takes for them."""
    decoder, slots = LookaheadDecoder(loaded.runner, LookaheadSettings(*numbers)), list[int]()
    for prompt in prompts:
        steps = list(decoder.run(prompt.token_ids, Limits(len(prompt.expected), loaded.eos_ids)))
        assert tuple(token for step in steps for token in step.tokens) == prompt.expected
        slots += [step.slots for step in steps[1:]]
    return slots


def _seconds_of_auto(loaded: LoadedModel, prompts: Sequence[Prompt], machine: Machine) -> float:
    runner, seconds = OnClock(loaded.runner, machine), 0.0
    with runner.counting():
        for _ in runner.prefill(prompts[0].token_ids):
            pass
        decoder = AutoOnClock(runner, machine)
        runner.settle()
        for prompt in prompts:
            tokens, began = list[int](), 0.0
            for step in decoder.run(prompt.token_ids, Limits(len(prompt.expected), loaded.eos_ids)):
                began = began if tokens else runner.now
                tokens += step.tokens
            assert tuple(tokens) == prompt.expected
            seconds += runner.now - began
    return seconds


def page_table(report: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The figures as a table of a page: auto ÷ best, and in brackets which that is and what it is to plain decoding."""
    lines = [f"| | {' | '.join(report)} |", f"|---|{'---|' * len(report)}"]
    for kind in next(iter(report.values())):
        cells = (
            f"{one['auto_to_best']:.2f} ({one['best']}: {one['best_to_plain']:.2f})"
            for one in (by_kind[kind] for by_kind in report.values())
        )
        lines.append(f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
