"""The benchmark of speed: its ratios, their intervals, and that a slip in a text ends it."""

import argparse
import json
import random
from pathlib import Path

import pytest

from benchmarks.pairs import Pair, auto_to_best, interval
from benchmarks.speed import beside_the_best, best_table, figures, floor_table, measured, page_table
from benchmarks.speed_contenders import BASE, BESIDE_COMPILED, COMPILED_IN_TURNS, IN_TURNS
from benchmarks.speed_round import Options, check, write
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


def test_ratios_are_those_of_the_time_behind_the_first_step() -> None:
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


def test_tokens_that_came_with_the_first_step_need_no_time_any_more() -> None:
    answers = {
        BASE: [[answer(11, 1, 11, 2.0)]],
        "plain, eager": [[answer(11, 1, 11, 1.0)]],
        "auto, eager": [[answer(11, 6, 6, 0.5)]],
    }
    code = figures(answers, PROMPTS[:1])["auto, eager"]["code"]
    assert (code["to_plain"][0], code["tokens_per_second"]) == (2.0, 10.0)
    assert beside_the_best(answers, PROMPTS[:1], "eager")["code"]["to_best"] == 2.0


def test_what_is_compiled_is_compared_with_the_time_of_transformers_beside_it_and_what_is_in_turns_with_none() -> None:
    answers = {
        BASE: [[answer(11, 1, 11, 2.0)]],
        "plain, eager": [[answer(11, 1, 11, 1.0)]],
        f"plain, {IN_TURNS}": [[answer(11, 1, 11, 1.5)]],
        BESIDE_COMPILED: [[answer(11, 1, 11, 4.0)] * 2],
        "plain, compiled": [[answer(11, 1, 11, 0.5)] * 2],
        f"plain, {COMPILED_IN_TURNS}": [[answer(11, 1, 11, 0.7)] * 2],
    }
    found = figures(answers, PROMPTS[:1])
    to_transformers = {name: (of["code"]["to_transformers"] or [None])[0] for name, of in found.items()}
    assert list(to_transformers.values()) == [1.0, 2.0, None, 1.0, 8.0, None]
    assert all(of["code"]["to_plain"][0] == 1.0 for of in found.values())


def test_of_the_rounds_the_median_counts_so_that_a_pause_of_the_machine_does_not() -> None:
    rounds = [answer(11, 1, 11, seconds) for seconds in (1.0, 9.0, 1.2)]
    found = figures({BASE: [rounds, rounds], "plain, eager": [rounds, rounds]}, [PROMPTS[0], PROMPTS[0]])
    assert found["plain, eager"]["code"]["tokens_per_second"] == round(10 / 1.2, 2)
    assert found["plain, eager"]["code"]["tokens_per_second_on_average"] == round(30 / 11.2, 2)


def test_rounds_that_were_kept_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[Options]()

    def run(command: list[str], check: bool) -> None:
        told.append(Options(**json.loads(command[-1])))
        write({"auto": rounds(told[-1].number + (0.5 if told[-1].compiled else 0))}, Path(told[-1].answers))

    monkeypatch.setattr("benchmarks.speed.subprocess.run", run)

    def seconds(keep: Path | None, eager: int, compiled: int) -> list[float]:
        arguments = argparse.Namespace(
            model=tmp_path, rounds=eager, compiled_rounds=compiled, grid=False, reference=None, keep=keep
        )
        return [one["auto"][0].rest_seconds for one in measured(arguments)]

    assert seconds(tmp_path / "kept", 1, 2) == [0.0, 0.5, 1.5]
    assert seconds(tmp_path / "kept", 2, 3) == [0.0, 1.0, 0.5, 1.5, 2.5]
    assert seconds(None, 1, 0) == [0.0]
    assert [(one.number, one.compiled) for one in told] == [
        *((0, False), (0, True), (1, True)),
        *((1, False), (2, True)),
        (0, False),
    ]


def test_another_text_is_found() -> None:
    with pytest.raises(AssertionError, match="two"):
        check({BASE: [[answer(11, 1, 11, 2.0)], [answer(5, 1, 5, 1.0)]]}, PROMPTS)


def rounds(*seconds: float) -> list[Answer]:
    """Eleven tokens in so many seconds, round by round."""
    return [answer(11, 1, 11, each) for each in seconds]


def test_auto_is_compared_with_the_best_of_each_kind() -> None:
    answers = {
        "plain, eager": [rounds(1.0, 1.0), rounds(1.0, 1.0)],
        "0,4,1, eager": [rounds(0.8, 0.8), rounds(1.2, 1.2)],
        "auto, eager": [rounds(1.0, 1.0), rounds(0.8, 0.8)],
        "plain, compiled": [rounds(0.1, 0.1), rounds(0.1, 0.1)],
    }
    found = beside_the_best(answers, PROMPTS, "eager")
    assert {kind: one["best"] for kind, one in found.items()} == {"code": "0,4,1", "random": "plain"}
    assert {kind: one["auto_to_best"][0] for kind, one in found.items()} == {"code": 0.8, "random": 1.25}


def test_settings_that_were_lucky_in_a_round_are_not_the_best_of_that_round() -> None:
    fixed = {"lucky once": [rounds(0.1, 1.2)], "always alike": [rounds(1.0, 1.0)]}
    found = auto_to_best([rounds(1.0, 1.0)], fixed)
    assert found["best"] == "lucky once"  # on average
    assert found["best_of_others"] == ["always alike", "lucky once"]
    assert found["auto_to_best"] == [1.1, 1.1, 1.1]
    assert found["by_round"] == [0.1, 1.2]


def test_auto_is_compared_with_the_best_in_the_same_round_where_the_machine_was_as_fast() -> None:
    found = auto_to_best([rounds(1.0, 1.1, 3.0)], {"plain": [rounds(1.0, 2.9, 3.0)]})
    assert found["by_round"] == [1.0, round(2.9 / 1.1, 3), 1.0]
    assert found["to_best"] == 1.0  # where the ratio of the medians is another


def test_of_a_single_round_the_best_is_its_own() -> None:
    found = auto_to_best([rounds(1.0)], {"faster": [rounds(0.5)], "slower": [rounds(2.0)]})
    assert found.pop("best_of_others") == ["faster"]
    assert found == {"best": "faster", "to_best": 0.5, "by_round": [0.5], "auto_to_best": [0.5, 0.5, 0.5]}


def test_the_page_has_the_figures_that_were_measured() -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / "speed_demo.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for field in ("to_transformers", "to_plain"):
        assert page_table(report, field) in page
    assert floor_table(report) in page
    assert best_table(report) in page


def test_a_speed_is_told_as_a_part_of_what_passes_of_one_slot_would_allow() -> None:
    def costs(floor: float) -> dict[str, dict[str, float]]:
        return {"ms": {"1": 4.0, "2": 5.0}, "part_of_it_that_is_the_floor": {"1": floor, "2": 1.0}}

    names = (BASE, BESIDE_COMPILED, "auto, eager", "auto, compiled", f"auto, {IN_TURNS}", f"auto, {COMPILED_IN_TURNS}")
    table = floor_table(
        {
            "model": "demo",
            "prompts": {"multi_turn": 3},
            "pass_costs": {"demo, eager": costs(0.25), "demo, compiled": costs(0.5)},
            "contenders": {
                name: {kind: {"tokens_per_second": rate} for kind, rate in (("all", 200.0), ("multi_turn", 1500.0))}
                for name in names
            },
        }
    )
    assert table.splitlines() == [
        "| tokens a second | all | multi turn |",
        "|---|---|---|",
        f"| {BASE} | 200 (20 %) | 1500 (150 %) |",
        f"| {BESIDE_COMPILED} | 200 (20 %) | 1500 (150 %) |",
        "| auto, eager | 200 (20 %) | 1500 (150 %) |",
        "| auto, compiled | 200 (40 %) | 1500 (300 %) |",
    ]
