"""How fast decoding is here, eager and compiled, beside transformers: with intervals, and the tuner beside a grid.

Run as `python -m benchmarks.speed [--model FOLDER] [--rounds 3] [--grid] [--json FILE]`, on a CPU, float32, greedy.
Every prompt goes to all contenders before any gets the next, who begins changes, and all write the same tokens or the
run fails. A ratio is one of tokens per second behind the first step, over all prompts of a kind; its interval holds
95 % of the ratios of prompts drawn anew (with replacement, 2,000 times). With --grid fixed settings take part too, so
that what the tuner chooses can be compared with the best of them.
"""

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.demo_decoding import BUNDLED
from ladechat.bench.contenders import Answer, Contender, Ours, Transformers
from ladechat.bench.machine import describe
from ladechat.bench.measure import measure
from ladechat.bench.options import KINDS
from ladechat.bench.prompts import Prompt, make_prompts
from ladechat.bench.questions import read_questions
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Decoder, Limits
from ladechat.decoder.tuned import TunedDecoder
from ladechat.decoder.tuner import Tuner
from ladechat.model.compiler import use_compiled
from ladechat.model.cost import PassCosts
from ladechat.model.eager import EagerRunner
from ladechat.model.loading import LoadedModel, load
from ladechat.model.passes import Passes

MAX_NEW_TOKENS = 64
RANDOM_PROMPTS, RANDOM_LENGTH = 8, 60
DRAWS = 2000
GRID = [
    *((0, 4, guesses) for guesses in (0, 1, 2, 3, 5, 8)),
    *((2, 3, 2), (3, 3, 3), (5, 3, 5), (7, 3, 7), (5, 5, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15)),
]
BASE = "transformers generate"


class Through:
    """A contender of ours whose passes run in one way, whatever the others do."""

    def __init__(self, name: str, ours: Ours, runner: EagerRunner, passes: Passes | None) -> None:
        self.name = name
        self._ours, self._runner, self._passes = ours, runner, passes

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Contender.answer`."""
        self._runner.compiled = self._passes
        return self._ours.answer(prompt, limits)


class Auto:
    """A decoder that goes on learning, over prompts, with a pool of its own for each."""

    def __init__(self, runner: EagerRunner) -> None:
        self._costs = PassCosts(runner)
        self._tuner = Tuner(self._costs)

    def __call__(self, runner: Runner) -> Decoder:
        return TunedDecoder(LookaheadDecoder(runner), self._costs, self._tuner)


@dataclass(frozen=True)
class Pair:
    """What one contender did on one prompt in all rounds, behind the first steps."""

    tokens: int
    seconds: float


def main() -> None:
    """Measure, print tables, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.model
    loaded = load(folder, folder.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    limits = Limits(MAX_NEW_TOKENS, loaded.eos_ids)
    asked = make_prompts(loaded, read_questions(KINDS), MAX_NEW_TOKENS, tick=lambda: None)
    prompts = [*asked, *random_prompts(loaded, limits)]
    contenders = make_contenders(loaded, arguments.grid)
    rounds = measure(contenders, prompts, limits, arguments.rounds, tick=lambda: None)
    answers = {
        one.name: [[answers[one.name][i] for answers in rounds] for i in range(len(prompts))] for one in contenders
    }
    check(answers, prompts)
    report = {
        "machine": describe(),
        "model": folder.name,
        "parameters": loaded.parameters,
        "rounds": arguments.rounds,
        "prompts": {kind: sum(prompt.kind == kind for prompt in prompts) for kind in kinds_of(prompts)},
        "contenders": figures(answers, prompts),
    }
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def random_prompts(loaded: LoadedModel, limits: Limits) -> list[Prompt]:
    """Prompts without sense, after which little can be guessed: the worst case of every drafting decoder."""
    dice = random.Random(0)
    plain = AutoregressiveDecoder(loaded.runner)
    prompts = []
    for number in range(RANDOM_PROMPTS):
        ids = [dice.randrange(3, loaded.vocabulary) for _ in range(RANDOM_LENGTH)]
        answer = tuple(token for step in plain.run(ids, limits) for token in step.tokens)
        prompts.append(Prompt("random", f"random {number}", ids, answer))
    return prompts


def make_contenders(loaded: LoadedModel, grid: bool) -> list[Contender]:
    """transformers, and ours eager and compiled: plain, lookahead at its defaults, tuned; and the grid if wanted."""
    runner = loaded.runner
    assert isinstance(runner, EagerRunner)
    use_compiled(runner, loaded.folder, "compiled")
    compiled, runner.compiled = runner.compiled, None
    found: list[Contender] = [Transformers(BASE, loaded)]
    ways = {"eager": None, "compiled": compiled} if compiled is not None and compiled.sizes else {"eager": None}
    for way, passes in ways.items():
        makes: dict[str, Any] = {
            f"plain, {way}": AutoregressiveDecoder,
            f"lookahead 5,3,5, {way}": partial(_fixed, settings=LookaheadSettings(5, 3, 5)),
            f"auto, {way}": Auto(runner),
        }
        for numbers in GRID if grid else ():
            makes[f"{','.join(map(str, numbers))}, {way}"] = partial(_fixed, settings=LookaheadSettings(*numbers))
        found += [Through(name, Ours(name, loaded, make), runner, passes) for name, make in makes.items()]
    return found


def _fixed(runner: Runner, settings: LookaheadSettings) -> Decoder:
    return LookaheadDecoder(runner, settings)


def check(answers: Mapping[str, Sequence[Sequence[Answer]]], prompts: Sequence[Prompt]) -> None:
    """All have written the same.

    Raises:
        AssertionError: one has not.
    """
    for name, by_prompt in answers.items():
        for prompt, repeated in zip(prompts, by_prompt, strict=True):
            assert {answer.tokens for answer in repeated} == {prompt.expected}, (name, prompt.name)


def kinds_of(prompts: Sequence[Prompt]) -> list[str]:
    """The kinds of prompts, in their order."""
    return list(dict.fromkeys(prompt.kind for prompt in prompts))


def figures(
    answers: Mapping[str, Sequence[Sequence[Answer]]], prompts: Sequence[Prompt]
) -> dict[str, dict[str, dict[str, Any]]]:
    """For each contender and kind of prompt: tokens per second and step, and ratios with their intervals."""
    pairs = {name: [_pair(repeated) for repeated in by_prompt] for name, by_prompt in answers.items()}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, by_prompt in answers.items():
        found[name] = {}
        for kind in ("all", *kinds_of(prompts)):
            chosen = [i for i, prompt in enumerate(prompts) if kind in (prompt.kind, "all")]
            first = [by_prompt[i][0] for i in chosen]
            plain = f"plain, {name.rsplit(', ', 1)[-1]}" if name != BASE else BASE
            found[name][kind] = {
                "tokens_per_second": round(_rate([pairs[name][i] for i in chosen]), 2),
                "tokens_per_step": round(sum(len(one.tokens) for one in first) / sum(one.passes for one in first), 3),
                "to_transformers": interval([(pairs[name][i], pairs[BASE][i]) for i in chosen]),
                "to_plain": interval([(pairs[name][i], pairs[plain][i]) for i in chosen]),
            }
    return found


def _pair(repeated: Sequence[Answer]) -> Pair:
    tokens = sum(len(answer.tokens) - answer.first_tokens for answer in repeated)
    return Pair(tokens, sum(answer.rest_seconds for answer in repeated))


def _rate(pairs: Sequence[Pair]) -> float:
    return sum(pair.tokens for pair in pairs) / sum(pair.seconds for pair in pairs)


def interval(pairs: Sequence[tuple[Pair, Pair]]) -> list[float]:
    """The ratio of two rates, and the ends of its interval."""
    dice = random.Random(0)

    def ratio(chosen: Sequence[tuple[Pair, Pair]]) -> float:
        return _rate([mine for mine, _ in chosen]) / _rate([other for _, other in chosen])

    drawn = sorted(ratio(dice.choices(pairs, k=len(pairs))) for _ in range(DRAWS))
    return [round(value, 3) for value in (ratio(pairs), drawn[DRAWS // 40], drawn[-DRAWS // 40])]


def show(report: Mapping[str, Any]) -> None:
    """The figures as tables: everything over transformers, and over plain decoding in the same way."""
    kinds = ["all", *report["prompts"]]
    for title, field in (("÷ transformers", "to_transformers"), ("÷ plain decoding, same passes", "to_plain")):
        table = Table("decoder", *kinds, title=title)
        for name, by_kind in report["contenders"].items():
            table.add_row(name, *("{:.2f} ({:.2f}–{:.2f})".format(*by_kind[kind][field]) for kind in kinds))
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
