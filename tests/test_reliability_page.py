"""The pages about mishaps and about attackers name a test in each row, and each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = [
    line
    for page in ("reliability.md", "security.md")
    for line in (ROOT / "docs" / page).read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| fault |", "| wants |"))
]


@cache
def names_of_tests(path: Path) -> set[str]:
    """The names of the tests in a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_each_row_names_a_test_that_exists(row: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
    assert named, row
    for file, test in named:
        assert test in names_of_tests(ROOT / file), (file, test)


def test_there_are_rows() -> None:
    assert ROWS
