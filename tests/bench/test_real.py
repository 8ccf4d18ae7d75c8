"""The benchmark on a real model: which questions, what is made of times that are made up, and how a run goes on."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import real
from benchmarks.real_answers import Answers
from benchmarks.real_figures import Difference, difference, figures, rate, speedup, tie
from benchmarks.real_questions import Question, chosen, read_questions
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


def test_the_speedup_is_the_ratio_of_the_times_for_all_texts_that_are_the_same() -> None:
    rows = [
        {"fast": answer(TEN, rest_seconds=1.0), "plain": answer(TEN, rest_seconds=2.0)},
        {"fast": answer(TEN, rest_seconds=3.0), "plain": answer(TEN, rest_seconds=10.0)},
        {"fast": answer(TEN[:5], rest_seconds=0.1), "plain": answer(TEN, rest_seconds=50.0)},
    ]
    assert speedup(rows, "fast", "plain") == 12 / 4
    assert speedup(rows[2:], "fast", "plain") is None


def test_a_method_has_its_figures_beside_plain_decoding_and_transformers() -> None:
    fast = replace(answer(TEN, passes=4, rest_seconds=1.0), slots=26, first_seconds=0.1)
    rows = [{"fast": fast, "plain": answer(TEN, 10, rest_seconds=2.0), "theirs": answer(TEN, 10, rest_seconds=3.0)}]
    assert figures(rows, "fast", "plain", "theirs") == {
        "answers": 1,
        "tokens": 10,
        "tokens_per_pass": 2.5,
        "slots_per_pass": 6.5,
        "tokens_per_second": 9.0,
        "to_plain": 2.0,
        "to_transformers": 3.0,
        "first_token_ms": 100.0,
        "same_text": 1,
    }


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
    monkeypatch.setattr(sys, "argv", ["real", *map(str, given)])
    assert real.main() == 0
    report = json.loads(out.read_text())
    assert {"autoregressive", "lookahead 15,5,15", "auto", "transformers"} <= report["methods"].keys()
    assert all(method["overall"]["same_text"] == 3 for method in report["methods"].values())
    assert str(tmp_path) not in out.read_text() and not list(tmp_path.glob("*.answers.jsonl"))
    assert "× plain" in capsys.readouterr().out
