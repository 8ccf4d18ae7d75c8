"""The search for layers to skip, on made-up costs and a clock that only they move."""

from collections.abc import Callable, Set
from itertools import count, pairwise
from pathlib import Path

import pytest

from ladechat.decoder.draft_model import Drafted
from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter, default_skipped
from ladechat.decoder.loop import Decoder
from ladechat.model.loading.self_check import tree_runner
from ladechat.tuning.kept import write_kept
from ladechat.tuning.skip_search import (
    JUDGED_TOKENS,
    LEAST_GAIN,
    measured_rate,
    read_skipped,
    search,
    skip_file,
    skipped_layers,
    write_skipped,
)
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


@pytest.mark.parametrize("seed", range(5))
def test_the_best_set_is_found_with_enough_time(seed: int) -> None:
    judge = Judge()
    found = search(judge, LAYERS, 1e9, seed, judge.clock)
    assert found.skipped == BEST and found.rate == 1.0
    assert found.tried == len(judge.tried) == len(set(judge.tried))
    assert judge.tried[0] == default_skipped(LAYERS)
    assert all(skipped < set(range(LAYERS)) for skipped in judge.tried)


def test_no_set_is_begun_after_the_time_is_over_and_the_best_so_far_is_taken() -> None:
    for seconds in (0, 1, 7):
        judge = Judge()
        found = search(judge, LAYERS, seconds, 0, judge.clock)
        assert len(judge.tried) == max(1, seconds)
        assert found.skipped == min(judge.tried, key=lambda skipped: len(skipped ^ BEST))


def test_a_seed_decides_what_is_tried() -> None:
    def tried(seed: int) -> list[frozenset[int]]:
        judge = Judge()
        search(judge, LAYERS, 20, seed, judge.clock)
        return judge.tried

    assert tried(1) == tried(1) != tried(2)


def test_what_may_be_chance_is_no_gain() -> None:
    judge = Judge(gain=(LEAST_GAIN - 1) / 2)
    assert search(judge, LAYERS, 1e9, 0, judge.clock).skipped == default_skipped(LAYERS)
    assert len(judge.tried) == 1 + LAYERS, "each layer once"


def test_a_model_of_one_layer_skips_nothing() -> None:
    judge = Judge()
    assert search(judge, 1, 1e9, 0, judge.clock).skipped == frozenset()
    assert judge.tried == [frozenset()]


# --- the measurement -------------------------------------------------------------------------------------------------


class ClockedDrafts(ClockedRunner):
    """Drafts what it says itself, so that all is accepted; each layer of a drafting pass takes a tenth of a second."""

    layers = 8

    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        self._now += 0.1 * (self.layers - len(skipped)) * most
        return [Drafted(0, 1.0)] * most


def test_a_rate_is_tokens_by_the_time_of_drafts_and_passes() -> None:
    runner = ClockedDrafts(lambda slots: 1.0)
    rate = measured_rate(runner, runner, [1, 2, 3], runner.perf_counter)
    # Passes of 9 tokens, each with 8 drafts, and at the end one token, for which nothing is drafted.
    for skipped in (frozenset[int](), frozenset({1, 2, 3}), frozenset(range(7))):
        assert rate(skipped) == pytest.approx(JUDGED_TOKENS / (8 + 7 * 8 * 0.1 * (8 - len(skipped))))


def test_a_search_on_a_model_leaves_its_text_as_it_was() -> None:
    model = random_model(0, num_hidden_layers=4)
    runner = tree_runner(model, 256)
    ticks: Callable[[], int] = count().__next__
    found = search(measured_rate(runner, runner, [5, 6, 7], ticks), runner.layers, 12, 0, ticks)
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
    write_kept(file, "skipped", kept)
    assert read_skipped(file, LAYERS) is None


def test_nothing_is_known_where_there_is_no_file(tmp_path: Path) -> None:
    assert read_skipped(tmp_path / "skipped.json", LAYERS) is None


def test_each_model_as_it_runs_has_a_file_of_its_own() -> None:
    files = [skip_file(device="cpu", threads=threads) for threads in (1, 2)]
    assert all(one != other for one, other in pairwise(files))


def test_layers_are_searched_for_once_and_kept(tmp_path: Path) -> None:
    model = random_model(0, num_hidden_layers=4)
    runner, file = tree_runner(model, 256), tmp_path / "skipped.json"
    default = default_skipped(4)
    assert skipped_layers(runner, runner, [5, 6, 7], 0, file) == default
    assert not file.exists()
    assert skipped_layers(runner, runner, [5, 6, 7], 1e-9, file) == default, "there is time for the default set alone"
    assert read_skipped(file, 4) == default
    write_skipped(file, frozenset({0, 3}))
    for seconds in (0.0, 1e9):
        assert skipped_layers(runner, runner, [5, 6, 7], seconds, file) == {0, 3}
