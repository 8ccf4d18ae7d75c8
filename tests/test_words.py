"""What people see has one word each for question, answer, conversation and system prompt."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ladechat"
OTHER_WORDS = re.compile(r"\b(turns?(?<!by turns)|exchanges?|repl(y|ies)|system messages?|(this|the) message)\b", re.I)
"""The protocol, recordings and code have turns, exchanges and messages."""


def shown(source: str) -> Iterator[str]:
    """The texts in a module that may be shown: of several words, and no docstring, template or HTML."""
    tree = ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield from [node.value] if " " in node.value.strip() and not re.search("{%|^<", node.value) else []


def test_no_text_that_is_shown_has_another_word() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    possible = {path: source for path, source in sources.items() if OTHER_WORDS.search(source)}
    found = [(path.name, text) for path, source in possible.items() for text in shown(source)]
    assert [one for one in found if OTHER_WORDS.search(one[1])] == []


def test_a_second_word_for_a_question_is_found() -> None:
    assert list(shown('"""This turn."""\nsay(f"{number} turns ago")\n')) == [" turns ago"]
    assert OTHER_WORDS.search(" turns ago") and not OTHER_WORDS.search("underlined or bold by turns;")
