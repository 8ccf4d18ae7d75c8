"""The page of promises names a file of tests in each row, that on attackers a test; and each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def rows(page: str, head: str) -> list[str]:
    """The rows of all tables of a page, without their heads."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith("| ") and not line.startswith(f"| {head} |")]
    assert found, page
    return found


def name(row: str) -> str:
    return row.split("|")[1].strip()[:60]


@cache
def names_of_tests(path: Path) -> set[str]:
    """The names of the tests in a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {function for function in functions if function.startswith("test_")}


@pytest.mark.parametrize("row", rows("reliability.md", "promise"), ids=name)
def test_each_promise_names_a_file_of_tests(row: str) -> None:
    (file,) = re.findall(r"`(tests/[\w/]+\.py)`", row)
    assert names_of_tests(ROOT / file)


@pytest.mark.parametrize("row", rows("security.md", "wants"), ids=name)
def test_each_defence_names_a_test_that_exists(row: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
    assert named, row
    for file, test in named:
        assert test in names_of_tests(ROOT / file), (file, test)
