"""Figures that can be worked out by hand."""

import pytest

from ladechat.bench.figures import Difference, Figures, figures
from ladechat.bench.measure import Round
from ladechat.bench.methods import TimedAnswer
from tests.bench.made_up import answer, prompt

TEN = tuple(range(10, 20))


def both(mine: list[TimedAnswer], plain: list[TimedAnswer]) -> Round:
    return {"autoregressive": plain, "fast": mine}


def over(rounds: list[Round], kinds: str = "a", kind: str | None = None) -> Figures:
    prompts = [prompt(each, f"{each} {index}", TEN) for index, each in enumerate(kinds)]
    return figures("fast", rounds, prompts, kind)


def test_s_is_tokens_by_passes_and_the_models_own_token_counts() -> None:
    row = over([both([answer(TEN, passes=4), answer(TEN[:6], passes=4)], [answer(TEN, 10)] * 2)], "ab")
    assert (row.tokens, row.passes, row.slots, row.tokens_per_step) == (16, 8, 24, 2.0)


def test_speed_is_that_of_the_tokens_behind_the_first_step() -> None:
    row = over([both([answer(TEN, first=4, rest_seconds=3.0)], [answer(TEN, first=1, rest_seconds=9.0)])])
    assert row.tokens_per_second == 2.0 and row.speedup == 2.0
    assert row.first_token_seconds == 0.25


def test_the_speedup_is_the_median_of_the_ratios_within_each_round() -> None:
    rounds = [
        both([answer(TEN, rest_seconds=mine)], [answer(TEN, rest_seconds=plain)])
        for mine, plain in ((1.0, 2.0), (10.0, 10.0), (2.0, 8.0))
    ]
    row = over(rounds)
    assert row.speedup == 2.0 and row.speedup_range == (1.0, 4.0)


def test_figures_of_a_kind_are_those_of_its_prompts_alone() -> None:
    plain = [answer(TEN, 10, rest_seconds=8.0)] * 3
    mine = [answer(TEN, 5, rest_seconds=4.0), answer(TEN, 2, rest_seconds=1.0), answer(TEN, 5, rest_seconds=4.0)]
    row = over([both(mine, plain)], "aba", "b")
    assert (row.answers, row.tokens_per_step, row.speedup) == (1, 5.0, 8.0)


def test_without_a_second_step_there_is_no_speed() -> None:
    row = over([both([answer([10], rest_seconds=0.0)], [answer([10], rest_seconds=0.0)])])
    assert (row.tokens_per_second, row.speedup, row.speedup_range) == (None, None, None)


def test_a_method_that_lies_is_not_exact_and_its_first_difference_is_told() -> None:
    lie = (*TEN[:7], 99, *TEN[8:])
    rounds = [both([answer(TEN), answer(TEN)], [answer(TEN)] * 2), both([answer(TEN), answer(lie)], [answer(TEN)] * 2)]
    row = over(rounds, "ab")
    assert not row.exact and row.differences == [Difference("b 1", 7)]
    assert over(rounds, "ab", "a").exact


@pytest.mark.parametrize("tokens", [TEN[:4], (*TEN, 5)])
def test_an_answer_that_ends_elsewhere_is_not_exact(tokens: tuple[int, ...]) -> None:
    row = over([both([answer(tokens)], [answer(TEN)])])
    assert row.differences == [Difference("a 0", min(len(tokens), len(TEN)))]


def test_drafts_add_up_by_source_and_stay_unknown_where_they_are() -> None:
    drafted = TimedAnswer(TEN, 1, 5, 5, 0.1, 1.0, tested={"window": 4, "prompt": 1}, accepted={"window": 3})
    unknown = TimedAnswer(TEN, 1, 5, 5, 0.1, 1.0, tested=None)
    row = over([both([drafted, drafted], [answer(TEN)] * 2)], "ab")
    assert (row.tested, row.accepted) == ({"window": 8, "prompt": 2}, {"window": 6})
    assert over([both([unknown], [answer(TEN)])]).tested is None
