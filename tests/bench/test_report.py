"""Figures as tables, as a file and as a picture."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ladechat.bench.figures import Difference
from ladechat.bench.methods import TimedAnswer
from ladechat.bench.options import KINDS
from ladechat.bench.report import BenchReport, make_report, show, write_json
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.device import Threads
from tests.bench.made_up import answer, prompt

TEN = tuple(range(10, 20))
OTHERS = (*TEN[:3], 0, *TEN[4:])


def report_of(loaded: LoadedModel, says: tuple[int, ...] = TEN) -> BenchReport:
    prompts = [prompt("chat", "chat 1", TEN), prompt("code $x$ [b]", "code 1", TEN)]
    fast = TimedAnswer(says, 1, 5, 60, 0.01, 0.5, tested={"window": 4}, accepted={"window": 1})
    unknown = replace(fast, tested=None, accepted={}, rest_seconds=2.0)
    rounds = [{"autoregressive": [answer(TEN, 10)] * 2, "lookahead 3,3,3": [fast] * 2, "transformers": [unknown] * 2}]
    threads = dict.fromkeys(rounds[0], loaded.threads) | {"transformers": Threads(7)}
    return make_report(loaded, threads, prompts, rounds, max_new_tokens=10)


def shown(report: BenchReport, width: int = 120) -> str:
    console = Console(file=StringIO(), width=width)
    show(report, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.lstrip().startswith(name))


def test_the_table_has_s_acceptance_speed_and_exactness_of_everyone(loaded: LoadedModel) -> None:
    text = shown(report_of(loaded))
    cells = line_of(text, "lookahead 3,3,3").split()
    assert cells == ["lookahead", "3,3,3", "2.00", "25", "%", "18.0", "2.00×", "2.00–2.00", "10", "ms", "yes"]
    assert "n/a" in line_of(text, "transformers")
    assert "2.00 2.00×" in text and "code $x$ [b]" in text


def test_the_report_has_the_threads_of_every_method(loaded: LoadedModel, tmp_path: Path) -> None:
    report = report_of(replace(loaded, threads=Threads(1, 5)))
    text = shown(report, 200)
    assert "kernels, 5 threads, and torch, 1" in text and "transformers runs the model as it is, with 7" in text
    write_json(report, tmp_path / "bench.json")
    threads = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["threads"]
    assert threads["autoregressive"] == {"torch": 1, "kernels": 5} and threads["transformers"]["torch"] == 7


def test_in_float32_a_difference_is_an_error_and_in_short_types_it_has_its_reason(loaded: LoadedModel) -> None:
    where = "2 of 2 answers are not those of plain decoding, the first in chat 1 from token 4 on"
    text = shown(report_of(loaded, OTHERS))
    assert "NO" in line_of(text, "lookahead 3,3,3") and where in text
    text = shown(report_of(replace(loaded, dtype="bfloat16"), OTHERS))
    assert "2 differ" in line_of(text, "lookahead 3,3,3") and where in text and "In bfloat16" in text
    text = shown(report_of(replace(loaded, fast_passes=True), OTHERS))
    assert "2 differ" in line_of(text, "lookahead 3,3,3") and "Fast passes of different size" in text


def test_no_figure_is_cut_in_80_columns(loaded: LoadedModel) -> None:
    report = report_of(loaded)
    row = report.overall["lookahead 3,3,3"]
    wide = replace(row, tokens_per_second=1234.5, speedup_range=(1.04, 12.34), differences=[Difference("chat 1", 3)])
    names = ("autoregressive", "lookahead 15,15,15", "transformers prompt-lookup")
    kinds = dict.fromkeys(KINDS, 9)
    text = shown(
        BenchReport(
            {**report.about, "prompts": kinds},
            dict.fromkeys(names, wide),
            dict.fromkeys(names, dict.fromkeys(kinds, wide)),
        ),
        width=80,
    )
    assert "…" not in text and text.count("1.04–12.34") == len(names)


def test_the_file_has_what_was_measured_on_what(loaded: LoadedModel, tmp_path: Path) -> None:
    write_json(report_of(loaded, OTHERS), tmp_path / "bench.json")
    content = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert content["prompts"] == {"chat": 1, "code $x$ [b]": 1} and content["rounds"] == 1
    assert {"processor", "cores", "torch", "transformers"} <= content["machine"].keys()
    assert (content["model"], content["device"], content["dtype"]) == ("tiny", "cpu", "float32")
    row = content["methods"]["lookahead 3,3,3"]["by_kind"]["chat"]
    assert row == {
        "answers": 1,
        "tokens": 10,
        "passes": 5,
        "tokens_per_step": 2.0,
        "slots_per_pass": 12.0,
        "drafts": {"window": {"tested": 4, "accepted": 1, "acceptance_rate": 0.25}},
        "tokens_per_second": 18.0,
        "speedup": 2.0,
        "speedup_range": [2.0, 2.0],
        "first_token_ms": 10.0,
        "exact": False,
        "differences": [{"prompt": "chat 1", "token": 3}],
    }
    assert content["methods"]["transformers"]["overall"]["drafts"] is None


@pytest.mark.parametrize(("name", "begins"), [("bench.png", b"\x89PNG"), ("bench.svg", b"<?xml")])
def test_the_plot_is_of_the_kind_that_its_name_ends_in(
    loaded: LoadedModel, tmp_path: Path, name: str, begins: bytes
) -> None:
    pytest.importorskip("matplotlib")
    from ladechat.bench.plot import write_plot

    write_plot(report_of(loaded), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)
