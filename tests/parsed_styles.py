"""Style sheets are parsed once for all apps of a run. Parsing them anew is a seventh of an app's start."""

import pytest
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

Parsed = LRUCache[tuple[object, ...], list[RuleSet]]

MOST_SHEETS = 1000
"""Of one theme. An app has some dozens, one for each kind of widget."""


def parse_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all sheets of styles with the same variables, which are those of the same theme, share what was parsed."""
    begin, set_variables = Stylesheet.__init__, Stylesheet.set_variables
    parsed: dict[frozenset[tuple[str, str]], Parsed] = {}

    def share(sheet: Stylesheet) -> None:
        sheet._parse_cache = parsed.setdefault(frozenset(sheet._variables.items()), LRUCache(MOST_SHEETS))

    def begin_sharing(sheet: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
        begin(sheet, variables=variables)
        share(sheet)

    def set_variables_and_share(sheet: Stylesheet, variables: dict[str, str]) -> None:
        sheet._parse_cache = LRUCache(1)  # which is cleared now, and not that of the others
        set_variables(sheet, variables)
        share(sheet)

    monkeypatch.setattr(Stylesheet, "__init__", begin_sharing)
    monkeypatch.setattr(Stylesheet, "set_variables", set_variables_and_share)
