"""What passes cost, from session to session."""

from pathlib import Path

import pytest
from platformdirs import user_cache_path

from ladechat.model import cost
from ladechat.model.cost import MOST_ASSUMED, PassCosts
from ladechat.model.cost_file import LONGEST_KEPT, Kept, costs_file, read_costs, write_costs
from tests.tiny import random_model, runner_for

COSTS = Kept({1: 0.01, 4: 0.02}, 0.5)


def test_what_was_kept_comes_back_for_the_same_compiled_passes(tmp_path: Path) -> None:
    file = tmp_path / "new" / "costs.json"
    write_costs(file, [1, 4], COSTS)
    assert read_costs(file, [1, 4]) == COSTS
    assert read_costs(file, []) is None
    assert [file] == list(file.parent.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"compiled": [], "seconds": {"1": -1, "4": 2}, "lost": 0}',
        '{"compiled": [], "seconds": {"4": 2}, "lost": 0}',
        '{"compiled": [], "seconds": {"1": 1, "4": 2}}',
        '{"compiled": [], "seconds": {"1": 1, "4": 2}, "lost": -1}',
    ],
)
def test_what_makes_no_sense_is_measured_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)
    assert read_costs(file, []) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    write_costs(tmp_path / "taken" / "costs.json", [], COSTS)


def test_old_files_make_room(tmp_path: Path) -> None:
    for number in range(LONGEST_KEPT + 5):
        write_costs(tmp_path / f"{number}.json", [], COSTS)
    assert len(list(tmp_path.iterdir())) == LONGEST_KEPT


def test_models_and_types_have_files_of_their_own() -> None:
    files = {costs_file(random_model(1)), costs_file(random_model(1, num_hidden_layers=2))}
    assert len(files) == 2 and {file.parent for file in files} == {user_cache_path("ladechat") / "costs"}
    assert costs_file(random_model(1)) == costs_file(random_model(2)), "the weights have no part in what a pass costs"


def test_a_second_session_times_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[int] = []

    def time(_: PassCosts, slots: int) -> float:
        timed.append(slots)
        return 0.001 * slots + (0.0002 if timed[-2:-1] > [1] else 0)

    monkeypatch.setattr(cost.PassCosts, "_time", time)
    first = PassCosts(runner_for(random_model(1)), tmp_path / "costs.json")
    first.refresh()
    assert timed
    timed.clear()
    second = PassCosts(runner_for(random_model(1)), tmp_path / "costs.json")
    second.refresh()
    assert second.measured and not timed
    assert second.known() == first.known()
    assert first.lost and second.lost == first.lost


def test_what_was_kept_is_looked_at_again_even_if_it_is_too_dear_to_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []

    def time(_: PassCosts, slots: int) -> float:
        timed.append(slots)
        return 0.01

    monkeypatch.setattr(cost.PassCosts, "_time", time)
    write_costs(tmp_path / "costs.json", [], Kept({1: 0.01, 4: 0.5, 16: 0.9}, 0.0))
    costs = PassCosts(runner_for(random_model(1)), tmp_path / "costs.json")
    assert costs.refresh() is True
    for _ in range(20_000):
        costs.observe(1, 0.01)
        assert costs.refresh() is False
        if {4, 16} <= set(timed):
            break
    assert {4, 16} <= set(timed)
    assert costs(4) < 0.5 and costs(16) < 0.9


@pytest.mark.parametrize(("lost", "assumed"), [(0.2, 0.2), (2.0, MOST_ASSUMED)])
def test_of_what_was_kept_as_lost_no_more_is_assumed_than_of_what_is_measured(
    tmp_path: Path, lost: float, assumed: float
) -> None:
    file = tmp_path / "costs.json"
    write_costs(file, [], Kept({1: 0.001, 4: 0.002}, lost))
    costs = PassCosts(runner_for(random_model(1)), file)
    costs.refresh()
    assert costs.lost == assumed
