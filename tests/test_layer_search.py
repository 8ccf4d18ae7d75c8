"""The search for layers to skip, on made-up costs and a clock that only they move."""

from collections.abc import Callable, Set
from itertools import count
from pathlib import Path

import pytest

from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter, default_skipped
from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.decoder.loop import Decoder
from ladechat.layer_search import (
    JUDGED_TOKENS,
    LEAST_GAIN,
    Found,
    Over,
    budget,
    improved,
    measured_rate,
    read_skipped,
    search,
    write_skipped,
)
from ladechat.model.loading.self_check import tree_runner
from ladechat.tuning.saved import write_value
from tests.tiny import plain, random_model, run, tokens_of
from tests.tuning.clocked import ClockedRunner

LAYERS = 12
BEST = frozenset({1, 2, 5, 8})


class Judge:
    """Says that sets are the better, the nearer they are to the best; each takes a second to try."""

    def __init__(self, gain: float = 0.1) -> None:
        self.tried: list[frozenset[int]] = []
        self._gain = gain

    def __call__(self, skipped: frozenset[int]) -> float:
        self.tried.append(skipped)
        return float((1 + self._gain) ** -len(skipped ^ BEST))

    def clock(self) -> float:
        return float(len(self.tried))


def never() -> bool:
    return False


def searched(judge: Judge, over: Over = never, seed: int | None = 0, layers: int = LAYERS) -> Found:
    """From the default set on."""
    return search(judge, layers, over, default_skipped(layers), seed)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_set_is_found_with_enough_time(seed: int) -> None:
    judge = Judge()
    found = searched(judge, seed=seed)
    assert found.skipped == BEST and found.rate == 1.0
    assert found.tried == len(set(judge.tried))
    assert judge.tried[0] == default_skipped(LAYERS)
    assert all(skipped < set(range(LAYERS)) for skipped in judge.tried)


def test_a_search_goes_on_from_the_set_it_is_given() -> None:
    judge = Judge()
    found = search(judge, LAYERS, never, BEST)
    assert judge.tried[0] == found.skipped == BEST
    assert found.tried == len(judge.tried) == 1 + LAYERS, "each layer once"


def test_no_set_is_begun_after_the_end_and_the_best_so_far_is_taken() -> None:
    for seconds in (0, 1, 7):
        judge = Judge()
        found = searched(judge, budget(seconds or 1e-9, lambda part: None, clock=judge.clock))
        again = 2  # a set that seems better, and the one before
        assert max(1, seconds) <= len(judge.tried) <= max(1, seconds) + 1 + again
        assert found.skipped == min(judge.tried, key=lambda skipped: len(skipped ^ BEST))


def test_a_seed_decides_what_is_tried() -> None:
    def tried(seed: int | None) -> list[frozenset[int]]:
        judge = Judge()
        searched(judge, seed=seed)
        return judge.tried

    assert tried(1) == tried(1) != tried(2)
    assert len({tuple(tried(None)) for _ in range(4)}) > 1, "without one, another order each time"


def test_what_may_be_chance_is_no_gain() -> None:
    judge = Judge(gain=(LEAST_GAIN - 1) / 2)
    assert searched(judge).skipped == default_skipped(LAYERS)
    assert len(judge.tried) == 1 + LAYERS, "each layer once"


@pytest.mark.parametrize("rates", [[0.5, *[1.0] * 9], [1.0, 2.0, *[1.0] * 9]], ids=["slow at first", "fast once"])
def test_a_gain_that_is_not_there_the_second_time_is_none(rates: list[float]) -> None:
    """The machine was busy with something else, or for once it was not."""
    left = iter(rates)
    assert search(lambda skipped: next(left), 3, never, frozenset()).skipped == frozenset()


def test_where_not_even_the_first_set_could_be_judged_it_stays() -> None:
    assert search(lambda skipped: 0.0, LAYERS, never, BEST).skipped == BEST


def test_a_model_of_one_layer_skips_nothing() -> None:
    judge = Judge()
    assert searched(judge, layers=1).skipped == frozenset()
    assert judge.tried == [frozenset()]


def test_a_budget_ends_a_search_when_its_time_is_over_or_it_is_stopped() -> None:
    now, stopped, seen = 5.0, False, list[float]()
    over = budget(4.0, seen.append, lambda: stopped, lambda: now)
    assert not over()
    now = 8.0
    assert not over()
    stopped = True
    assert over()
    stopped, now = False, 11.0
    assert over()
    assert seen == [0.0, 0.75, 0.75, 1.0]


# --- the measurement -------------------------------------------------------------------------------------------------


class ClockedDrafts(ClockedRunner):
    """Drafts what it says itself, so that all is accepted; each layer of a drafting pass takes a tenth of a second."""

    layers = 8

    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        self._now += 0.1 * (self.layers - len(skipped)) * most
        return [Drafted(0, 1.0)] * most


def test_a_rate_is_tokens_by_the_time_of_drafts_and_passes() -> None:
    runner = ClockedDrafts(lambda slots: 1.0)
    rate = measured_rate(runner, runner, [1, 2, 3], clock=runner.perf_counter)
    # Passes of 9 tokens, each with 8 drafts, and at the end one token, for which nothing is drafted.
    for skipped in (frozenset[int](), frozenset({1, 2, 3}), frozenset(range(7))):
        assert rate(skipped) == pytest.approx(JUDGED_TOKENS / (8 + 7 * 8 * 0.1 * (8 - len(skipped))))


@pytest.mark.parametrize("answers", [0, 1, 5])
def test_a_set_is_not_judged_by_half_a_text(answers: int) -> None:
    runner, ends = ClockedDrafts(lambda slots: 1.0), iter([False] * answers)
    assert measured_rate(runner, runner, [1, 2, 3], lambda: next(ends, True))(frozenset({1})) == 0
    assert len(runner.tokens) < 3 + JUDGED_TOKENS


def test_a_search_on_a_model_leaves_its_text_as_it_was() -> None:
    model = random_model(0, num_hidden_layers=4)
    runner = tree_runner(model, 256)
    ends = iter([False] * 300)
    ticks: Callable[[], int] = count().__next__
    rate = measured_rate(runner, runner, [5, 6, 7], lambda: next(ends, True), ticks)
    found = search(rate, runner.layers, lambda: next(ends, True), default_skipped(4), 0)
    assert found.skipped < set(range(4)) and found.tried > 1
    steps = run(Decoder(runner, [LayerSkipDrafter(runner, found.skipped)]), [5, 6, 7], 30)
    assert tokens_of(steps) == plain(model, [5, 6, 7], 30)


# --- the file --------------------------------------------------------------------------------------------------------


def test_what_was_found_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "skipped.json"
    for skipped in (BEST, frozenset[int]()):
        write_skipped(file, skipped)
        assert read_skipped(file, LAYERS) == skipped


@pytest.mark.parametrize("kept", [None, 3, "1", {"1": 2}, [1, "2"], [True], [1.0], [-1], [LAYERS], [*range(LAYERS)]])
def test_what_does_not_fit_the_model_is_as_good_as_nothing(tmp_path: Path, kept: object) -> None:
    file = tmp_path / "skipped.json"
    write_value(file, {"skipped": kept})
    assert read_skipped(file, LAYERS) is None


def test_what_a_search_finds_is_kept_and_the_next_one_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, file = Judge(), tmp_path / "skipped.json"
    monkeypatch.setattr("ladechat.layer_search.measured_rate", lambda *_: judge)
    runner = ClockedDrafts(lambda slots: 1.0)
    runner.layers = LAYERS
    no_gain = LAYERS - len(default_skipped(LAYERS) ^ BEST)
    ends = iter([False] * (no_gain + 1))  # so many sets are tried, in any order: one of them is better
    first = improved(runner, runner, [5], file, lambda: next(ends, True))
    assert default_skipped(LAYERS) != first.skipped == read_skipped(file, LAYERS)
    judge.tried.clear()
    assert improved(runner, runner, [5], file, never).skipped == BEST == read_skipped(file, LAYERS)
    assert judge.tried[:2] == [first.skipped] * 2, "once to warm up"


def test_a_search_without_a_gain_keeps_nothing(tmp_path: Path) -> None:
    runner = tree_runner(random_model(0, num_hidden_layers=4), 256)
    for file, known in ((tmp_path / "none.json", None), (tmp_path / "kept.json", frozenset({0, 3}))):
        if known is not None:
            write_skipped(file, known)
        found = improved(runner, runner, [5, 6, 7], file, budget(1e-9, lambda part: None))
        assert found.skipped == (default_skipped(4) if known is None else known)
        assert found.rate == 0, "not even the first set was judged"
        assert read_skipped(file, 4) == known
