"""The rounds: turns that are fair, and a warm-up that does not count."""

from collections import Counter

from ladechat.bench.measure import answers_in_all, measure
from ladechat.bench.prompts import BenchPrompt
from ladechat.decoder.step import Limits
from tests.bench.made_up import Scripted

PROMPTS = [BenchPrompt(kind, kind, [index], ()) for index, kind in enumerate(["chat", "chat", "code", "chat"])]
NAMES = ("a", "b", "c")


def turns(rounds: int) -> tuple[list[tuple[str, int]], int, int]:
    """Who answered which prompt in which order; how often progress was told, and how often it was announced."""
    log: list[tuple[str, int]] = []
    ticks: list[None] = []
    methods = [Scripted(name, log) for name in NAMES]
    measured = measure(methods, PROMPTS, Limits(9), rounds, lambda: ticks.append(None))
    assert len(measured) == rounds
    assert all(len(answers[name]) == len(PROMPTS) for answers in measured for name in NAMES)
    return log, len(ticks), answers_in_all(methods, PROMPTS, rounds)


def test_all_methods_answer_a_prompt_before_any_gets_the_next() -> None:
    log, _, _ = turns(rounds=2)
    lots = [log[start : start + 3] for start in range(0, len(log), 3)]
    assert all(len({prompt for _, prompt in lot}) == 1 and {name for name, _ in lot} == set(NAMES) for lot in lots)


def test_the_warm_up_is_over_the_first_prompt_of_each_kind_and_does_not_count() -> None:
    log, ticks, announced = turns(rounds=1)
    assert {prompt for _, prompt in log[:6]} == {0, 2}
    assert [prompt for _, prompt in log[6::3]] == [0, 1, 2, 3]
    assert ticks == announced == len(log)


def test_who_begins_with_a_prompt_changes_from_round_to_round_until_everybody_has() -> None:
    log, _, _ = turns(rounds=3)
    began = Counter(log[6::3])
    assert began == Counter((name, prompt) for name in NAMES for prompt in range(len(PROMPTS)))


def test_who_follows_whom_changes_from_prompt_to_prompt() -> None:
    log, _, _ = turns(rounds=1)
    lots = [[name for name, _ in log[start : start + 3]] for start in range(6, len(log), 3)]
    followers = {pair for lot in lots for pair in zip(lot, lot[1:] + lot[:1], strict=True)}
    assert len(followers) > len(NAMES)  # in one and the same circle each has one follower
