"""`make test-versions` tries what pyproject.toml declares: each range is begun at its lower bound."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tools.versions import constraints_for, lowest_of

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_a_range_is_pinned_to_its_lower_bound() -> None:
    assert lowest_of(["torch>=2.11,<3", "huggingface-hub>=1.5,<3"]) == ["torch==2.11", "huggingface-hub==1.5"]


def test_what_has_no_lower_bound_is_left_free() -> None:
    assert lowest_of(["a", "b<2", "c==1.0", "d>=3"]) == ["d==3"]


def test_all_that_users_install_is_tried_at_the_first_version_that_is_declared() -> None:
    pins = {pin.name: pin for pin in map(Requirement, constraints_for("lowest"))}
    extras = [one for name, some in PROJECT["optional-dependencies"].items() if name != "dev" for one in some]
    for declared in map(Requirement, [*PROJECT["dependencies"], *extras]):
        (first,) = (bound.version for bound in declared.specifier if bound.operator == ">=")
        assert str(pins[declared.name].specifier) == f"=={first}"


def test_the_newest_are_bounded_by_the_ranges_alone() -> None:
    assert constraints_for("newest") == []
