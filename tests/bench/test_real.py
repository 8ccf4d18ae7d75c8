"""The benchmark on a real model: which questions, what is made of times that are made up, and how a run goes on."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from rich.console import Console
from torch import nn

from benchmarks import real
from benchmarks.real_answers import Answers
from benchmarks.real_figures import Difference, Resampled, Row, comparison, difference, figures, rate, speedup, tie
from benchmarks.real_plot import picture
from benchmarks.real_questions import Question, chosen, read_questions
from benchmarks.real_report import make_report, show
from benchmarks.real_worker import read_bytes
from ladechat.bench.options import PLAIN
from tests.bench.made_up import answer

TEN = tuple(range(10, 20))
QUESTIONS = [Question(number, "abc"[number % 3], f"question {number}") for number in range(30)]


def test_each_category_has_so_many_questions_and_those_that_are_asked_for() -> None:
    found = chosen(QUESTIONS, [4, 7, 10], 2)
    assert [question.category for question in found] == ["a", "a", "b", "b", "b", "c", "c"]
    assert {4, 7, 10} <= {question.id for question in found}
    assert found == chosen(QUESTIONS, [4, 7, 10], 2)
    assert [question.id for question in chosen(QUESTIONS, [5], 0)] == [5]


@pytest.mark.parametrize(("ids", "per_category", "named"), [([99], 2, "no question 99"), ([], 0, "--per-category")])
def test_questions_that_are_not_there_are_refused(ids: list[int], per_category: int, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        chosen(QUESTIONS, ids, per_category)


def test_the_first_turns_of_a_file_are_asked(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": 3, "category": "maths", "turns": ["What?", "Why?"]}\n')
    assert read_questions(file) == [Question(3, "maths", "What?")]
    file.write_text('{"id": 3}\n')
    with pytest.raises(ValueError, match=r"questions\.jsonl is no file of questions"):
        read_questions(file)


def test_speed_is_that_of_the_tokens_after_the_first_step() -> None:
    assert rate([answer(TEN, first=4, rest_seconds=1.0), answer(TEN, first=2, rest_seconds=3.0)]) == (6 + 8) / 4
    assert rate([answer([5], rest_seconds=0.0)]) is None


def test_the_speedup_is_the_ratio_of_the_tokens_per_second_in_answer_to_the_same_questions() -> None:
    rows = [
        {"fast": answer(TEN, rest_seconds=1.0), "plain": answer(TEN, rest_seconds=2.0)},
        {"fast": answer(TEN[:5], rest_seconds=1.0), "plain": answer(TEN, rest_seconds=4.0)},
    ]
    assert speedup(rows, "fast", "plain") == ((9 + 4) / 2) / (18 / 6)
    assert speedup([{"fast": answer([5]), "plain": answer(TEN)}], "fast", "plain") is None


def test_a_method_has_its_figures_beside_what_it_is_compared_with() -> None:
    fast = replace(answer(TEN, passes=4, rest_seconds=1.0), slots=26, first_seconds=0.1)
    rows = [
        {"fast": fast, PLAIN: answer(TEN, 10, rest_seconds=2.0), "own": answer(TEN[:9], 9), "theirs": answer(TEN, 10)}
    ]
    assert figures(rows, "fast", {"to_plain": PLAIN, "to_theirs": "theirs"}, "own") == {
        "answers": 1,
        "tokens": 10,
        "tokens_per_pass": 2.5,
        "slots_per_pass": 6.5,
        "tokens_per_second": 9.0,
        "to_plain": 2.0,
        "to_theirs": 1.0,
        "first_token_ms": 100.0,
        "same_text": 1,
        "same_text_as_own_plain": 0,
    }


def slow_and_fast(*slower: float) -> list[Row]:
    """For each question what a plain answer took, and one of twice its speed."""
    return [{PLAIN: answer(TEN, 10, rest_seconds=one), "auto": answer(TEN, 5, rest_seconds=one / 2)} for one in slower]


def test_an_interval_holds_the_figure_and_is_the_same_each_time() -> None:
    rows = slow_and_fast(1.0, 2.0, 3.0, 4.0)
    low, high = Resampled([1, 2, 3, 4]).interval(rows, PLAIN) or (0.0, 0.0)
    assert 9 / 4 <= low < (rate([row[PLAIN] for row in rows]) or 0.0) < high <= 9
    assert Resampled([1, 2, 3, 4]).interval(rows, PLAIN) == [low, high]


def test_the_interval_of_a_ratio_that_no_question_changes_is_that_ratio() -> None:
    rows = slow_and_fast(1.0, 2.0, 3.0, 4.0)
    assert Resampled([1, 2, 3, 4]).interval(rows, "auto", PLAIN) == [2.0, 2.0]


def test_rounds_of_one_question_are_drawn_together() -> None:
    assert Resampled([7, 7, 7]).interval(slow_and_fast(1.0, 2.0, 3.0), PLAIN) == [4.5, 4.5]


def test_figures_without_a_second_step_have_no_interval() -> None:
    assert Resampled([1]).interval([{PLAIN: answer([5], rest_seconds=0.0)}], PLAIN) is None


def test_a_comparison_names_the_kind_of_question_where_the_method_gains_least() -> None:
    often, rarely = slow_and_fast(1.0), [{PLAIN: answer(TEN), "auto": answer(TEN, rest_seconds=0.8)}]
    found = comparison([*often, *rarely], {"a": often, "b": rarely}, Resampled([1, 2]), "auto", PLAIN)
    assert (found["least_kind"], found["least"]) == ("b", 1.25)
    assert found["ratio"] == round(2 / 1.3, 3) and found["interval"] == [1.25, 2.0]


class Idle:
    """A process that has answered everything already."""

    def __init__(self, *methods: str) -> None:
        self.methods, self.facts, self.threads = methods, {"weight_bytes": None}, 1


def report_of(tmp_path: Path, rows: Sequence[Row], processes: Mapping[str, Idle]) -> dict[str, Any]:
    about = {"model": "tiny", "tokens": 10, "threads": 1, "temperature": 0.8, "questions": list(range(len(rows)))}
    answers = Answers(tmp_path / "real.answers.jsonl", {**about, "machine": {"processor": "a processor"}})
    for number, row in enumerate(rows):
        answers.add(0, number, row)
    return make_report(answers, QUESTIONS, {}, cast("Any", processes))


def test_a_report_compares_what_took_part_and_has_a_picture(tmp_path: Path) -> None:
    rows = [
        {**row, "int8 autoregressive": answer(TEN[:8], rest_seconds=0.5), "llama.cpp Q8_0": answer(TEN)}
        for row in slow_and_fast(1.0, 2.0, 3.0)
    ]
    processes = {"this": Idle(PLAIN, "auto"), "int8": Idle("int8 autoregressive"), "llama": Idle("llama.cpp Q8_0")}
    report = report_of(tmp_path, rows, processes)
    compared = {(one["method"], one["base"]) for one in report["comparisons"]}
    assert compared == {("auto", PLAIN), ("int8 autoregressive", "llama.cpp Q8_0")}
    eight = report["methods"]["int8 autoregressive"]["overall"]
    assert (eight["same_text"], eight["same_text_as_own_plain"]) == (0, 3)
    drawn = ElementTree.fromstring(picture(report))
    words = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"ladechat plain", "ladechat auto", "ladechat int8 plain", "llama.cpp Q8_0", "4.5"} <= set(words)
    _, *bars = drawn.iter("{http://www.w3.org/2000/svg}rect")
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert len(widths) == 4 and widths[1] == pytest.approx(2 * widths[0], abs=0.1) and max(widths) == widths[2]
    show(report, Console(file=StringIO()))


class Embedded(nn.Module):
    """A model of an embedding, a layer, and an output layer that may be the embedding."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(20, 4), nn.Linear(4, 4), nn.Linear(4, 20, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.head


@pytest.mark.parametrize("tied", [True, False])
def test_a_pass_reads_the_output_layer_once_and_an_embedding_only_if_it_is_that(tied: bool) -> None:
    assert read_bytes(Embedded(tied)) == 4 * (4 * 4 + 4 + 20 * 4)


def test_a_method_that_is_not_there_cannot_be_left_out_nor_can_plain_decoding() -> None:
    processes = cast("Any", {"this": Idle(PLAIN, "auto")})
    assert list(real.taking_part(processes, ["auto"])) == [PLAIN]
    for name in ("autos", PLAIN):
        with pytest.raises(ValueError, match=f"'{name}' cannot be left out; these can: auto"):
            real.taking_part(processes, [name])


def test_a_text_parts_from_another_where_its_first_token_differs_or_where_it_ends() -> None:
    assert difference(3, answer(TEN), answer(TEN)) is None
    assert difference(3, answer((*TEN[:6], 99)), answer(TEN)) == Difference(3, 6, (16, 99))
    assert difference(3, answer(TEN[:6]), answer(TEN)) == Difference(3, 6, (16, None))


def test_two_tokens_nearly_tie_if_rounding_could_turn_them_around() -> None:
    one, other = [1.0, 1.001, 0.0], [1.0, 1.001, 0.0005]
    assert tie(one, other, (0, 1))["near_tie"]
    assert not tie(one, other, (0, 2))["near_tie"]
    assert not tie(one, other, (0, None))["near_tie"]


def test_a_run_that_was_ended_goes_on_and_another_kind_of_run_is_refused(tmp_path: Path) -> None:
    path, about = tmp_path / "real.answers.jsonl", {"tokens": 128, "questions": [1, 2]}
    Answers(path, about).add(0, 1, {"plain": answer(TEN)})
    again = Answers(path, about)
    assert again.rows == {(0, 1): {"plain": answer(TEN)}}
    with pytest.raises(ValueError, match="another run"):
        Answers(path, {**about, "tokens": 64})


@pytest.mark.full
def test_a_whole_run_on_a_tiny_model(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "real.json"
    lines = [{"id": one.id, "category": one.category, "turns": [one.text]} for one in QUESTIONS]
    questions.write_text("\n".join(map(json.dumps, lines)))
    given = ["--model", checkpoint, "--questions", questions, "--per-category", 1, "--tokens", 12, "--out", out]
    without_kernels = ["--quantize", ""]
    monkeypatch.setattr(sys, "argv", ["real", *map(str, given), *without_kernels])
    assert real.main() == 0
    report = json.loads(out.read_text())
    exact = {"autoregressive", "lookahead 15,5,15", "auto", "transformers"}
    assert exact | {"transformers bfloat16"} <= report["methods"].keys()
    assert all(report["methods"][name]["overall"]["same_text"] == 3 for name in exact)
    assert str(tmp_path) not in out.read_text() and not list(tmp_path.glob("*.answers.jsonl"))
    assert "× plain" in capsys.readouterr().out
