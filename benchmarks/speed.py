"""How fast decoding is here, eager and compiled, beside transformers: with intervals, and the tuner beside a grid.

Run as `python -m benchmarks.speed [--model FOLDER] [--rounds 2] [--compiled-rounds 9] [--grid] [--reference PYTHON]
[--keep FOLDER] [--json FILE] [--plot FILE]`, on a CPU, float32, greedy. All write the same tokens or the run fails.
Each round has a process of its own, as what a process has in common makes some percent, and several where passes are
compiled: so those have more rounds. In a round decoders take turns step by step, each with a KV cache of its own. When
plain decoding is done with a prompt, those follow that answer it in one go: transformers, the authors' implementation,
and plain decoding, lookahead and auto once more, to be compared with them. With compiled passes a turn is all steps of
a fiftieth of a second, for such steps are so short that each lives on what the last one has left in the processor's
caches. The prompts of a kind are one session: as in the app, the n-gram pool is kept from one to the next. Of the times
of the rounds the median counts for each prompt, as a machine pauses. A ratio is one of the times from the end of the
first step to the last token of the same texts, over all prompts of a kind: what is done behind it, when nobody waits,
does not count (of `generate`, the authors' too, all does). Its interval holds 95 % of the ratios of prompts drawn anew
(with replacement, 2,000 times). With --grid fixed settings take part too, so that what the tuner chooses can be
compared with the best of them, in each round with what was best in the others, too; with --reference the authors'
implementation, run by that Python (see `benchmarks.reference`), beside eager passes.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.demo_decoding import BUNDLED
from benchmarks.pairs import auto_to_best, interval, pair, rate, rate_on_average
from benchmarks.speed_contenders import (
    BASE,
    BESIDE_COMPILED,
    COMPILED_IN_TURNS,
    IN_TURNS,
    REFERENCE,
    THEIR_PLAIN,
    pass_costs,
    passes_of,
)
from benchmarks.speed_prompts import prompts_of
from benchmarks.speed_round import Options, check, read
from ladechat.bench.contenders import Answer
from ladechat.bench.machine import describe
from ladechat.bench.measure import Round
from ladechat.bench.prompts import Prompt
from ladechat.model.loading import load


def main() -> None:
    """Measure, print tables, and write the figures and the picture if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--rounds", type=int, default=2, help="with eager passes")
    parser.add_argument("--compiled-rounds", type=int, default=9)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--reference", type=Path, metavar="PYTHON")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="of the rounds: those that are there count as measured"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.model
    loaded = load(folder, folder.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    ways = passes_of(loaded)
    if "compiled" not in ways:
        arguments.compiled_rounds = 0
    rounds, prompts = measured(arguments), prompts_of(loaded)
    names = list(dict.fromkeys(name for one in rounds for name in one))
    answers = {name: [[one[name][i] for one in rounds if name in one] for i in range(len(prompts))] for name in names}
    check(answers, prompts)
    report = {
        "machine": describe(),
        "model": folder.name,
        "parameters": loaded.parameters,
        "rounds": arguments.rounds,
        "rounds_compiled": arguments.compiled_rounds,
        "prompts": {kind: sum(prompt.kind == kind for prompt in prompts) for kind in kinds_of(prompts)},
        "contenders": figures(answers, prompts),
        "auto_to_best": {
            way: beside_the_best(answers, prompts, way)
            for way in (IN_TURNS, COMPILED_IN_TURNS)
            if f"auto, {way}" in answers
        },
        "pass_costs": pass_costs(loaded, ways),
    }
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if arguments.plot:
        from benchmarks.speed_plot import plot  # only where it is wanted: matplotlib may not be installed

        plot(report, arguments.plot)


def measured(arguments: argparse.Namespace) -> list[Round]:
    """All rounds, each in a process of its own, one behind the other; one that was kept is not measured again."""
    numbers = [(False, number) for number in range(arguments.rounds)]
    numbers += [(True, number) for number in range(arguments.compiled_rounds)]
    found: list[Round] = []
    with TemporaryDirectory() as temporary:
        folder: Path = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for compiled, number in numbers:
            file = folder / f"{'compiled' if compiled else 'eager'} {number}.json"
            options = Options(
                model=str(arguments.model),
                number=number,
                compiled=compiled,
                grid=arguments.grid,
                reference=str(arguments.reference) if arguments.reference else None,
                answers=str(file),
            )
            if not file.exists():
                told = json.dumps(asdict(options))
                subprocess.run([sys.executable, "-m", "benchmarks.speed_round", told], check=True)
            found.append(read(file))
    return found


def kinds_of(prompts: Sequence[Prompt]) -> list[str]:
    """The kinds of prompts, in their order."""
    return list(dict.fromkeys(prompt.kind for prompt in prompts))


def figures(
    answers: Mapping[str, Sequence[Sequence[Answer]]], prompts: Sequence[Prompt]
) -> dict[str, dict[str, dict[str, Any]]]:
    """For each contender and kind of prompt: tokens per second and step, and ratios with their intervals."""
    pairs = {name: [pair(repeated) for repeated in by_prompt] for name, by_prompt in answers.items()}
    found: dict[str, dict[str, dict[str, Any]]] = {}

    def to_transformers(name: str, chosen: Sequence[int]) -> list[float] | None:
        if name.endswith((IN_TURNS, COMPILED_IN_TURNS)):  # where a turn comes behind one of another
            return None
        base = BESIDE_COMPILED if name.endswith("compiled") else BASE
        return interval([(pairs[name][i], pairs[base][i]) for i in chosen])

    for name, by_prompt in answers.items():
        found[name] = {}
        for kind in ("all", *kinds_of(prompts)):
            chosen = [i for i, prompt in enumerate(prompts) if kind in (prompt.kind, "all")]
            first = [by_prompt[i][0] for i in chosen]
            plain = _plain_of(name)
            found[name][kind] = {
                "tokens_per_second": round(rate([pairs[name][i] for i in chosen]), 2),
                "tokens_per_second_on_average": round(rate_on_average([pairs[name][i] for i in chosen]), 2),
                "tokens_per_step": round(sum(len(one.tokens) for one in first) / sum(one.passes for one in first), 3),
                "to_transformers": to_transformers(name, chosen),
                "to_plain": interval([(pairs[name][i], pairs[plain][i]) for i in chosen]),
            }
    return found


def _plain_of(name: str) -> str:
    """The contender that decodes plainly in the same way."""
    if name.startswith(REFERENCE):
        return THEIR_PLAIN
    return name if name.startswith(BASE) else f"plain, {name.rsplit(', ', 1)[-1]}"


def page_table(report: Mapping[str, Any], field: str) -> str:
    """The table of a page, Markdown: a row for each decoder but those of the grid, a column for each kind of prompts.

    Args:
        report: what was written as JSON.
        field: "to_transformers" or "to_plain".
    """
    kinds = ["all", *report["prompts"]]
    lines = [f"| | {' | '.join(kind.replace('_', ' ') for kind in kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for name, by_kind in report["contenders"].items():
        if name[0].isdigit() or by_kind["all"][field] is None:
            continue
        cells = ("{:.2f} ({:.2f}–{:.2f})".format(*by_kind[kind][field]) for kind in kinds)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def floor_table(report: Mapping[str, Any]) -> str:
    """The table of a page: tokens per second, and how much that is of one token each time that a pass of one slot could
    be over, if it took no longer than memory and arithmetic need (`benchmarks.floor`). Who takes turns is left out.
    """
    kinds, model = ["all", *report["prompts"]], report["model"]
    heads = " | ".join(kind.replace("_", " ") for kind in kinds)
    lines = [f"| tokens a second | {heads} |", f"|---|{'---|' * len(kinds)}"]
    for name, by_kind in report["contenders"].items():
        if name.endswith((IN_TURNS, COMPILED_IN_TURNS)):
            continue
        compiled = name.endswith(", compiled")
        costs = report["pass_costs"][f"{model}, {'compiled' if compiled else 'eager'}"]
        least = costs["ms"]["1"] * costs["part_of_it_that_is_the_floor"]["1"] / 1000
        rates = [by_kind[kind]["tokens_per_second"] for kind in kinds]
        lines.append(f"| {name} | {' | '.join(f'{rate:.0f} ({100 * least * rate:.0f} %)' for rate in rates)} |")
    return "\n".join(lines)


def beside_the_best(
    answers: Mapping[str, Sequence[Sequence[Answer]]], prompts: Sequence[Prompt], way: str
) -> dict[str, dict[str, Any]]:
    """For each kind of prompts the fastest of plain decoding and fixed settings, and auto's speed divided by theirs."""
    end = f", {way}"
    of_way = {name.removesuffix(end): by_prompt for name, by_prompt in answers.items() if name.endswith(end)}
    found = {}
    for kind in kinds_of(prompts):
        chosen = [index for index, prompt in enumerate(prompts) if prompt.kind == kind]
        of_kind = {name: [by_prompt[index] for index in chosen] for name, by_prompt in of_way.items()}
        found[kind] = auto_to_best(of_kind.pop("auto"), of_kind)
    return found


def best_table(report: Mapping[str, Any]) -> str:
    """The table of a page that says what was fastest, and how fast auto was beside it, by the round from … to …."""
    ways = report["auto_to_best"]
    heads = "".join(f"| best, {way} | auto ÷ best, by round | ÷ best of other rounds " for way in ways)
    lines = [f"| {heads}|", f"|---|{'---|---|---|' * len(ways)}"]
    for kind in report["prompts"]:
        cells = (_best_cells(ways[way][kind]) for way in ways)
        lines.append(f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _best_cells(found: Mapping[str, Any]) -> str:
    by_round = f"{found['to_best']:.2f} [{min(found['by_round']):.2f}–{max(found['by_round']):.2f}]"
    beside_others = "{:.2f} ({:.2f}–{:.2f})".format(*found["auto_to_best"])
    return f"{found['best']} | {by_round} | {beside_others}"


def show(report: Mapping[str, Any]) -> None:
    """The figures as tables: everything over transformers, over plain decoding in the same way, and over the floor."""
    kinds = ["all", *report["prompts"]]
    for title, field in (("÷ transformers", "to_transformers"), ("÷ plain decoding, same passes", "to_plain")):
        table = Table("decoder", *kinds, title=title)
        for name, by_kind in report["contenders"].items():
            if by_kind["all"][field] is not None:
                table.add_row(name, *("{:.2f} ({:.2f}–{:.2f})".format(*by_kind[kind][field]) for kind in kinds))
        Console(width=150).print(table)
    print(floor_table(report))
    if any(name[0].isdigit() for name in report["contenders"]):
        print(best_table(report))


if __name__ == "__main__":
    main()
