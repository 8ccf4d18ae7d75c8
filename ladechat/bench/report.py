"""The figures as tables, and as a JSON file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ladechat import __version__
from ladechat.bench.figures import Figures, figures
from ladechat.bench.machine import describe
from ladechat.bench.measure import Round
from ladechat.bench.methods import uses_kernels
from ladechat.bench.options import PLAIN, TRANSFORMERS
from ladechat.bench.prompts import BenchPrompt
from ladechat.files import replace_file
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.device import Threads

PRECISE = ("float32", "float64")
"""Types in which no difference is expected; in shorter ones, passes of different size round visibly differently."""

NONE = "–"

LEGEND = (
    "S: tokens ÷ forward passes that emitted them. Drafts accepted: of those that were tested. Speedup: tokens per "
    "second after the first step, against plain decoding in the same round; median and range over rounds."
)


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The figures of each method, overall and by kind of prompt, and the conditions of the measurement."""

    about: Mapping[str, Any]
    overall: Mapping[str, Figures]
    by_kind: Mapping[str, Mapping[str, Figures]]

    @property
    def kinds(self) -> list[str]:
        """The kinds of prompts, in their order."""
        return list(self.about["prompts"])


def make_report(
    loaded: LoadedModel,
    threads: Mapping[str, Threads],
    prompts: Sequence[BenchPrompt],
    rounds: Sequence[Round],
    max_new_tokens: int,
) -> BenchReport:
    """Compute the report from the measured rounds; `threads` are those of each method."""
    kinds = list(dict.fromkeys(prompt.kind for prompt in prompts))
    names = list(rounds[0])
    about = {
        "program": f"ladechat {__version__}",
        "machine": describe(),
        "device": loaded.device,
        "dtype": loaded.dtype,
        "quantization": loaded.quantization,
        "precise": loaded.dtype in PRECISE and not loaded.fast_passes,
        "threads": {name: one._asdict() for name, one in threads.items()},
        "kernels": loaded.model is not None and uses_kernels(loaded.model),
        "model": loaded.name,
        "parameters": loaded.parameters,
        "max_new_tokens": max_new_tokens,
        "rounds": len(rounds),
        "prompts": {kind: sum(prompt.kind == kind for prompt in prompts) for kind in kinds},
    }
    return BenchReport(
        about=about,
        overall={name: figures(name, rounds, prompts) for name in names},
        by_kind={name: {kind: figures(name, rounds, prompts, kind) for kind in kinds} for name in names},
    )


def write_json(report: BenchReport, path: Path) -> None:
    """Write all figures to a JSON file; docs/bench.md lists the fields."""
    methods = {
        name: {
            "overall": _record(whole),
            "by_kind": {kind: _record(part) for kind, part in report.by_kind[name].items()},
        }
        for name, whole in report.overall.items()
    }
    text = json.dumps({**report.about, "methods": methods}, indent=1, ensure_ascii=False)
    replace_file(path, f"{text}\n".encode(), make_folder=False)


def show(report: BenchReport, console: Console) -> None:
    """Print the tables, and below them what a reader must know."""
    about = report.about
    prompts, rounds = sum(about["prompts"].values()), about["rounds"]
    quantised = f", {about['quantization']}" if about["quantization"] else ""
    where = f"{about['model']} on {about['device']}, {about['dtype']}{quantised}"
    how_much = f"prompts: {prompts} · rounds: {rounds} · new tokens: {about['max_new_tokens']} at most"
    console.print(Text(f"{where} · {how_much}{_threads(about)}\n"))
    for table in (_overall_table(report), _source_table(report), _kind_table(report)):
        if table.row_count:
            console.print(table)
    console.print(Text("\n".join([*_differences(report), LEGEND])))


def _threads(about: Mapping[str, Any]) -> str:
    """Return, on a CPU, a line about the threads of ladechat's decoders and those of transformers."""
    if "cpu" not in about["device"]:
        return ""
    theirs = next((about["threads"][name]["torch"] for name in TRANSFORMERS if name in about["threads"]), None)
    own = about["threads"][PLAIN]
    kernels = f"its CPU kernels, {own['kernels']} threads, and " if own["kernels"] else ""
    line = f"\nladechat computes as in the app, with {kernels}torch, {own['torch']}"
    return line if theirs is None else f"{line} · transformers runs the model as it is, with {theirs}"


def _overall_table(report: BenchReport) -> Table:
    heads = ("S", "drafts\naccepted", "tok/s", "speedup", "range", "first\ntoken", "exact")
    table = _table("All prompts", *heads)
    for name, row in report.overall.items():
        table.add_row(
            name,
            f"{row.tokens_per_step:.2f}",
            "n/a" if row.tested is None else _percent(sum(row.accepted.values()), sum(row.tested.values())),
            NONE if row.tokens_per_second is None else f"{row.tokens_per_second:.1f}",
            _times(row.speedup),
            NONE if row.speedup_range is None else "{:.2f}–{:.2f}".format(*row.speedup_range),
            f"{1000 * row.first_token_seconds:.0f} ms",
            "yes" if row.exact else "NO" if report.about["precise"] else f"{len(row.differences)} differ",
        )
    return table


def _source_table(report: BenchReport) -> Table:
    rows = {name: row for name, row in report.overall.items() if row.tested}
    sources = list(dict.fromkeys(source for row in rows.values() for source in row.tested or {}))
    table = _table("Drafts accepted, by source", *sources)
    for name, row in rows.items():
        tested = row.tested or {}
        table.add_row(name, *(_percent(row.accepted.get(source, 0), tested.get(source, 0)) for source in sources))
    return table


def _kind_table(report: BenchReport) -> Table:
    table = _table("S and speedup, by kind", *map(Text, report.kinds))
    for name, by_kind in report.by_kind.items():
        rows = [by_kind[kind] for kind in report.kinds]
        table.add_row(name, *(f"{row.tokens_per_step:.2f} {_times(row.speedup)}" for row in rows))
    return table


def _table(title: str, *columns: str | Text) -> Table:
    """Return a table whose numbers are never cut: if it is narrow, the names of decoders are folded."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("decoder", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NONE


def _times(speedup: float | None) -> str:
    return NONE if speedup is None else f"{speedup:.2f}×"


def _differences(report: BenchReport) -> Iterator[str]:
    """Yield one line for each method that is not exact, and the reason if that is no error."""
    dtype, precise = report.about["dtype"], report.about["precise"]
    inexact = {name: row for name, row in report.overall.items() if not row.exact}
    for name, row in inexact.items():
        first = row.differences[0]
        where = f"the first in {first.prompt} from token {first.token + 1} on"
        yield f"{name}: {len(row.differences)} of {row.answers} answers are not those of plain decoding, {where}."
    if inexact and not precise:
        passes = "Fast passes" if dtype in PRECISE else f"In {dtype}, passes"
        yield f"{passes} of different size round differently: answers may part where two tokens nearly tie."


def _record(row: Figures) -> dict[str, Any]:
    return {
        "answers": row.answers,
        "tokens": row.tokens,
        "passes": row.passes,
        "tokens_per_step": round(row.tokens_per_step, 4),
        "slots_per_pass": round(row.slots / row.passes, 3),
        "drafts": None if row.tested is None else _drafts(row.tested, row.accepted),
        "tokens_per_second": _rounded(row.tokens_per_second),
        "speedup": _rounded(row.speedup),
        "speedup_range": row.speedup_range and [round(end, 4) for end in row.speedup_range],
        "first_token_ms": round(1000 * row.first_token_seconds, 3),
        "exact": row.exact,
        "differences": [asdict(difference) for difference in row.differences],
    }


def _drafts(tested: Mapping[str, int], accepted: Mapping[str, int]) -> dict[str, Any]:
    return {
        source: {
            "tested": count,
            "accepted": accepted.get(source, 0),
            "acceptance_rate": round(accepted.get(source, 0) / count, 4),
        }
        for source, count in tested.items()
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
