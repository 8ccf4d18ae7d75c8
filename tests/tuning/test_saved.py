"""What passes cost, from session to session."""

from pathlib import Path

import pytest
from platformdirs import user_cache_path

from ladechat.tuning.costs import read_costs
from ladechat.tuning.saved import MOST_FILES, saved_file, write_value

COSTS = {1: 0.01, 4: 0.02}


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "costs.json"
    write_value(file, {"seconds": COSTS})
    assert read_costs(file) == COSTS
    assert [file] == list(file.parent.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        "null",
        '{"seconds": []}',
        '{"seconds": {}}',
        '{"seconds": {"1": 1}}',
        '{"seconds": {"4": 2, "8": 3}}',
        '{"seconds": {"1": -1, "4": 2}}',
        '{"seconds": {"1": 0, "4": 2}}',
        '{"seconds": {"0": 1, "1": 1, "4": 2}}',
        '{"seconds": {"1": NaN, "4": 2}}',
        '{"seconds": {"1": 1, "4": Infinity}}',
        '{"seconds": {"1": "soon", "4": 2}}',
        '{"seconds": {"1": null, "4": 2}}',
        '{"seconds": {"few": 1, "4": 2}}',
        '{"seconds": {"1": 0.01, "4": 0.0',
        "\x00\x00\x00\x00",
        "\udcff\udcfe\udc80",
    ],
)
def test_what_makes_no_sense_is_as_good_as_nothing(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "costs.json"
    if text is not None:
        file.write_text(text, errors="surrogateescape")
    assert read_costs(file) is None


def test_old_files_make_room(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 5):
        write_value(tmp_path / f"{number}.json", {"seconds": COSTS})
    assert len(list(tmp_path.iterdir())) == MOST_FILES
    assert (tmp_path / f"{MOST_FILES + 4}.json").exists()


def test_each_model_as_it_runs_has_a_file_of_its_own() -> None:
    about = {"config": {"layers": 2}, "device": "cpu", "dtype": "float32", "threads": 2}
    others = [about | {"config": {"layers": 3}}, about | {"dtype": "bfloat16"}, about | {"threads": 1}]
    files = {saved_file("costs", **one) for one in (about, *others)}
    assert len(files) == 4 and {file.parent for file in files} == {user_cache_path("ladechat") / "costs"}
    assert saved_file("costs", **dict(reversed(about.items()))) == saved_file("costs", **about)
