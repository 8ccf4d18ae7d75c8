"""The benchmark of speed: its ratios, their intervals, and that a slip in a text ends it."""

import json
import random
from pathlib import Path

import pytest

from benchmarks.speed import Pair, beside_the_best, check, figures, interval, page_table
from benchmarks.speed_contenders import BASE
from ladechat.bench.contenders import Answer
from ladechat.bench.prompts import Prompt

ROOT = Path(__file__).parents[2]


def pair(tokens: int, seconds: float) -> Pair:
    return Pair(tokens, seconds, seconds)


def test_an_interval_is_a_point_where_all_prompts_agree() -> None:
    assert interval([(pair(10 * n, 1.0 * n), pair(10 * n, 2.0 * n)) for n in range(1, 9)]) == [2.0, 2.0, 2.0]


def test_an_interval_holds_the_ratio_and_narrows_with_more_prompts() -> None:
    dice = random.Random(1)
    pairs = [(pair(20, dice.uniform(0.5, 1.5)), pair(20, 1.0)) for _ in range(200)]
    few, many = interval(pairs[:10]), interval(pairs)
    for ratio, least, most in (few, many):
        assert least < ratio < most
    assert many[2] - many[1] < few[2] - few[1]


def answer(tokens: int, first: int, passes: int, seconds: float) -> Answer:
    return Answer(tuple(range(tokens)), first, passes, 0.1, seconds)


PROMPTS = [Prompt("code", "one", [1], tuple(range(11))), Prompt("random", "two", [1], tuple(range(6)))]


def test_ratios_are_those_of_tokens_per_second_behind_the_first_step() -> None:
    answers = {
        BASE: [[answer(11, 1, 11, 2.0)] * 2, [answer(6, 1, 6, 1.0)] * 2],
        "plain, eager": [[answer(11, 1, 11, 1.0)] * 2, [answer(6, 1, 6, 0.5)] * 2],
        "auto, eager": [[answer(11, 1, 5, 0.5)] * 2, [answer(6, 1, 6, 0.5)] * 2],
    }
    found = figures(answers, PROMPTS)
    assert found["plain, eager"]["all"]["to_transformers"][0] == 2.0
    assert found["auto, eager"]["code"]["to_transformers"][0] == 4.0
    assert found["auto, eager"]["code"]["to_plain"][0] == 2.0
    assert found["auto, eager"]["random"]["to_plain"] == [1.0, 1.0, 1.0]
    assert found["auto, eager"]["all"]["tokens_per_step"] == round(17 / 11, 3)
    check(answers, PROMPTS)


def test_of_the_rounds_the_median_counts_so_that_a_pause_of_the_machine_does_not() -> None:
    rounds = [answer(11, 1, 11, seconds) for seconds in (1.0, 9.0, 1.2)]
    found = figures({BASE: [rounds, rounds], "plain, eager": [rounds, rounds]}, [PROMPTS[0], PROMPTS[0]])
    assert found["plain, eager"]["code"]["tokens_per_second"] == round(10 / 1.2, 2)
    assert found["plain, eager"]["code"]["tokens_per_second_on_average"] == round(30 / 11.2, 2)


def test_another_text_is_found() -> None:
    with pytest.raises(AssertionError, match="two"):
        check({BASE: [[answer(11, 1, 11, 2.0)], [answer(5, 1, 5, 1.0)]]}, PROMPTS)


def test_auto_is_compared_with_the_best_of_each_kind() -> None:
    def rates(code: float, random: float) -> dict[str, dict[str, float]]:
        return {"code": {"tokens_per_second": code}, "random": {"tokens_per_second": random}}

    contenders = {
        "plain, eager": rates(10, 10),
        "0,4,1, eager": rates(12, 8),
        "auto, eager": rates(11.4, 11),
        "plain, compiled": rates(99, 99),
    }
    report = {"prompts": {"code": 1, "random": 1}, "contenders": contenders}
    assert beside_the_best(report, "eager") == {"code": ("0,4,1", 0.95), "random": ("plain", 1.1)}


def test_the_page_has_the_figures_that_were_measured() -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / "speed_demo.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for field in ("to_transformers", "to_plain"):
        assert page_table(report, field) in page
    for way in ("eager", "compiled"):
        for kind, (_, ratio) in beside_the_best(report, way).items():
            row = next(line for line in page.splitlines() if line.startswith(f"| {kind.replace('_', ' ')} | "))
            assert f"{ratio:.2f}" in row
