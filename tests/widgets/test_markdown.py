"""Markdown as lines of inks: what is shown, what it stands for, and that nothing in it takes for ever."""

import pytest
from hypothesis import given, settings, strategies as st
from pygments.lexers import get_lexer_by_name

from ladechat.palette import Palette
from ladechat.widgets.cells import cell_len
from ladechat.widgets.flow import safe
from ladechat.widgets.transcript.markdown import Formatted, listings_of
from ladechat.widgets.transcript.parts import LANGUAGES, listing

TEXT = """# How a pool works

The **n-gram pool** keeps *what the window* has produced; see `pool.py`.
It is ***fast***, ~~slow~~ and [here](https://example.com/pool).

1. Look up the last token
   - tails, newest first
2. Verify them

> It is accepted.

```python
def tails(token: int):  # newest first
    return POOL["a"][:5]
```

| decoder | S |
|---|---|
| lookahead | 1.62 |

***

Done.
"""
SHOWN = """How a pool works

The n-gram pool keeps what the window has produced; see pool.py.
It is fast, slow and here (https://example.com/pool).

1. Look up the last token
   • tails, newest first
2. Verify them

▌ It is accepted.

Python
│ def tails(token: int):  # newest first
│     return POOL["a"][:5]

decoder   │ S
──────────┼─────
lookahead │ 1.62

────────────────────────

Done."""

MARKS = ["#", "*", "**", "_", "`", "```", "~~", "[", "](", ")", "![", ">", "-", "1.", "|", "|-|-|", "\\", "&amp;", "<"]
HOSTILE = {
    "backticks": "`" * 60_000,
    "growing backticks": " ".join("`" * n for n in range(400)),
    "brackets": "[" * 60_000,
    "images": "![](" * 20_000,
    "links": "[a](" * 20_000,
    "emphasis": "*a _b " * 20_000,
    "quotations": ">" * 20_000 + "a",
    "nested lists": "- " * 20_000 + "a",
    "thousands of nested lists": "\n".join(" " * (2 * n % 600) + "- a" for n in range(5_000)),
    "a huge table": "|a" * 2_000 + "|\n" + "|-" * 2_000 + "|\n" + "|b\n" * 500,
    "a wide table": "|" + "a" * 9_000 + "|b|\n|-|-|\n|c|d|",
    "an open fence": "```python\n" + "x = '" * 20_000,
    "definitions": "[a]: b\n" * 5_000 + "[a]" * 5_000,
    "entities": "&#x" * 30_000,
}


def shown(text: str, width: int = 70) -> str:
    formatted = Formatted(width)
    formatted.show(safe(text))
    return "\n".join(line.text.rstrip() for line in formatted.lines)


def kinds(text: str) -> dict[str, str]:
    """The ink of each stretch of a text."""
    formatted = Formatted(200)
    formatted.show(text)
    return {part: ink.kind for line in formatted.lines for part, ink in line.runs}


def whole(formatted: Formatted, source: str) -> str:
    """What is copied when everything is selected."""
    spans = [line.origin.span(0, len(line.text)) for line in formatted.lines if line.origin is not None]
    return source[spans[0][0] : spans[-1][1]]


def test_an_answer_is_shown_as_it_is_meant() -> None:
    assert shown(TEXT) == SHOWN


def test_each_part_has_its_ink() -> None:
    inks = kinds(TEXT)
    expected = {"How a pool works": "heading", "n-gram pool": "strong", "what the window": "emphasis"}
    expected |= {"pool.py": "code", "fast": "strong_emphasis", "slow": "struck", "here": "link", "decoder": "strong"}
    expected |= {"def": "keyword", "tails": "name", "# newest first": "comment", '"a"': "string", "5": "number"}
    assert {part: inks[part] for part in expected} == expected


@pytest.mark.parametrize("dark", [True, False])
def test_without_colours_every_ink_but_those_of_listings_still_has_a_cue(dark: bool) -> None:
    palette = Palette(dark=dark, colour=False)
    for kind in ("heading", "strong", "emphasis", "strong_emphasis", "struck", "link", "code", "keyword"):
        assert palette.markup(kind).color is None
        assert palette.markup(kind), kind


def test_a_table_that_is_too_wide_is_shown_row_by_row() -> None:
    text = "|decoder|what it does|\n|-|-|\n|lookahead|guesses in parallel|\n|suffix|looks it up|"
    assert shown(text, 24).split("\n") == [
        "decoder: lookahead",
        "what it does: guesses in",
        "parallel",
        "────────────────────────",
        "decoder: suffix",
        "what it does: looks it",
        "up",
    ]


def test_lines_of_a_listing_are_cut_where_they_are_full_and_lose_nothing() -> None:
    text = "```\n" + "ab  cd  " * 6 + "\n```"
    lines = [line.removeprefix("│ ") for line in shown(text, 20).split("\n")]
    formatted = Formatted(20)
    formatted.show(text)
    assert "".join(line.text[2:] for line in formatted.lines) == "ab  cd  " * 6
    assert max(map(cell_len, lines)) == 18


def test_deep_nesting_leaves_room_for_the_text() -> None:
    text = "\n".join("  " * depth + "- word " + "other " * 5 for depth in range(18))
    assert all(cell_len(line) <= 30 for line in shown(text, 30).split("\n"))
    assert "• word other" in shown(text, 30).split("\n")[-4]


@pytest.mark.parametrize("width", [7, 30, 200])
def test_all_of_it_selected_is_what_was_written(width: int) -> None:
    formatted = Formatted(width)
    formatted.show(TEXT)
    assert whole(formatted, TEXT) == TEXT.rstrip("\n")


def test_a_part_that_is_selected_is_copied_as_it_was_written() -> None:
    formatted = Formatted(70)
    formatted.show(TEXT)
    line = next(line for line in formatted.lines if "n-gram" in line.text)
    assert line.origin is not None

    def copied(text: str) -> str:
        at = line.text.index(text)
        start, end = line.origin.span(at, at + len(text))  # type: ignore[union-attr]
        return TEXT[start:end]

    assert copied("n-gram pool") == "n-gram pool"
    assert copied("pool keeps what") == "pool** keeps *what"
    assert copied(line.text) == "The **n-gram pool** keeps *what the window* has produced; see `pool.py`."


STEERING = (
    "&#7;", "&#9;", "&#10;", "&#12;", "&#13;", "&#27;", "&#x9b;", "&#x202e;", "&#x2066;", "&#x2028;", "&NewLine;",
    "&Tab;", "&lrm;", "&zwj;", "&#xFFA0;",
)  # fmt: skip
"""Characters that would move the cursor, turn the text around, or be as wide as the terminal likes."""
PLACES = {
    "a paragraph": "a{}b",
    "a heading": "# a{}b",
    "a heading underlined": "a{}b\n===",
    "an item": "- a{}b",
    "a quotation": "> a{}b",
    "strong": "**a{}b**",
    "struck": "~~a{}b~~",
    "code": "`a{}b`",
    "a link": "[a{}b](http://c)",
    "a target": "[a](http://c{}d)",
    "a target that is defined": "[a]\n\n[a]: <c{}d>",
    "a title": "[a](c 'd{}e')",
    "an image": "![a{}b](c)",
    "where an image is": "![a](c{}d)",
    "a fence": "```py{}x\na{}b\n```",
    "code that is indented": "    a{}b",
    "the head of a table": "|a{}b|\n|-|\n|c|",
    "a table": "|a|\n|-|\n|c{}d|",
    "a long paragraph": "a{}b " * 2_000,
}


@pytest.mark.parametrize("place", PLACES)
def test_no_entity_becomes_a_character_that_steers_the_terminal(place: str) -> None:
    for entity in STEERING:
        source = PLACES[place].replace("{}", entity)
        formatted = Formatted(70)
        formatted.show(safe(source))
        for line in formatted.lines:
            assert line.text.isprintable() and line.text == safe(line.text), (entity, line.text)
        assert all(one.described.isprintable() for one in listings_of(source)), entity


def test_entities_for_white_space_are_spaces_in_a_line() -> None:
    assert shown("a&nbsp;b&Tab;c&NewLine;d&lrm;e") == "a b c de"


def test_what_follows_an_entity_is_copied_as_it_was_written() -> None:
    source = "10&nbsp;km is &lt;far&gt; from here"
    formatted = Formatted(70)
    formatted.show(source)
    [line] = formatted.lines
    assert line.origin is not None and line.text == "10 km is <far> from here"
    for word in ("10", "km", "is", "far", "from", "here"):
        start, end = line.origin.span(line.text.index(word), line.text.index(word) + len(word))
        assert source[start:end].removeprefix("10&nbsp;") == word, word


def test_what_follows_a_line_break_in_code_is_copied_as_it_was_written() -> None:
    source = "See `a\nb` in  it"
    formatted = Formatted(70)
    formatted.show(source)
    [line] = formatted.lines
    assert line.origin is not None and line.text == "See a b in  it"
    for word in ("a", "b", "in", "it"):
        start, end = line.origin.span(line.text.index(word), line.text.index(word) + len(word))
        assert source[start:end] == word, word


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2), (7, 8), (999_999_999, 1_000_000_000)])
def test_a_list_begins_with_the_number_that_was_written(first: int, second: int) -> None:
    text = f"{first}. one\n{first}. two"
    assert shown(text) == f"{first}. one\n{second}. two"


PIECES = [
    *MARKS, "word", "two words", " ", "\n", "\n\n", "  ", "    ", "\t", "é", "\u00a0", "2", "10", ".", ")", "1. a\n\n2",
    "- ", "- a\n\n", "[a]", "[a]: /b", "[a]: /b\n'c", "<", ">", "> ", "~~~", "```\n", "==", "---", "***", "|",
    "a|b\n-|-\n", "|" * 45 + "\n", "|" + "-|" * 44 + "\n", "\\", "&amp;", "#", "# ", "![a](b)", "http://a.b", "+", "* ",
]  # fmt: skip
"""What decides where a block ends, whole and in parts."""


def spans(formatted: Formatted) -> list[tuple[object, tuple[int, int] | None]]:
    """The lines, and what of the text each stands for."""
    return [(line.runs, line.origin.span(0, len(line.text)) if line.origin else None) for line in formatted.lines]


def grown_like_at_once(text: str, cuts: list[int]) -> None:
    growing, at_once, again = Formatted(24), Formatted(24), Formatted(80)
    for cut in sorted({cut % (len(text) + 1) for cut in cuts}):
        growing.show(text[:cut])
    growing.show(text)
    at_once.show(text)
    again.show(text)
    again.wrap(24)
    assert spans(growing) == spans(at_once) == spans(again)
    assert all(cell_len(line.text) <= 24 for line in at_once.lines)
    for _, span in spans(at_once):
        assert span is not None and 0 <= span[0] <= span[1] <= len(text)


CUTS = st.lists(st.integers(0, 400), max_size=12)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(lambda parts: safe("".join(parts).lstrip()))


@given(TEXTS, CUTS)
def test_a_text_that_grows_is_shown_like_the_same_text_at_once(text: str, cuts: list[int]) -> None:
    grown_like_at_once(text, cuts)


@pytest.mark.full
@settings(max_examples=4_000)
@given(TEXTS, CUTS)
def test_texts_that_grow_are_shown_like_the_same_texts_at_once_thousands_of_times(text: str, cuts: list[int]) -> None:
    grown_like_at_once(text, cuts)


SPLIT = {
    "the number of an item comes before its full stop": ("1. a\n2. b\n\n3", ". c"),
    "a target is defined below where it is used": ("see [a]\n\nb\n\n", "[a]: /c\n"),
    "a target is used below where it is defined": ("[a]: /c\n\nb\n\n", "see [a]"),
    "nothing is shown before the first paragraph": ("\n\n\na\n\n", "b"),
    "a wide table follows a narrow one": ("|a|b|\n|-|-|\n|1|2|\n\nb\n\n", "|" * 50 + "\n"),
}


@pytest.mark.parametrize("name", SPLIT)
def test_what_comes_later_changes_nothing_that_is_shown_as_final(name: str) -> None:
    before, after = SPLIT[name]
    grown_like_at_once(before + after, list(range(len(before + after))))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_shown_in_bounded_time(name: str) -> None:
    formatted = Formatted(60)
    formatted.show(HOSTILE[name])
    assert len(formatted.lines) <= len(HOSTILE[name]) + 1
    assert all(cell_len(line.text) <= 60 for line in formatted.lines)


def test_what_is_beyond_the_bound_is_shown_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.widgets.transcript.markdown.MOST_FORMATTED", 8)
    assert shown("**one**\n**two**") == "one\n**two**"


@pytest.mark.parametrize("language", ["python", "json", "html", "nobody knows", ""])
def test_a_listing_in_inks_is_the_same_text(language: str) -> None:
    code = "\n\n<a b='c'>\n\n{ \"x\": 1 }  \n\n"
    assert "\n".join("".join(text for text, _ in line) for line in listing(code, language)) == code


def test_every_language_that_is_named_has_a_lexer() -> None:
    assert all(get_lexer_by_name(word) for word in LANGUAGES)


def test_fenced_blocks_of_code_are_found_wherever_they_stand_and_end() -> None:
    text = "One:\n```py\na = 1\n\nb\n```\n- two\n  ~~~\n  c\n  ~~~\n\n```\n\n```\nunder way:\n```odd word\nd\n"
    found = listings_of(text)
    assert [one.code for one in found] == ["a = 1\n\nb", "c", "d"]
    assert [one.described for one in found] == ["3 lines of Python", "1 line of code", "1 line of odd"]
    assert listings_of("`inline`\n\n    indented\n") == []


def test_the_word_behind_a_fence_is_safe_to_print() -> None:
    [found] = listings_of("```p\x1b[2J\u202ey\ncode\n```")
    assert found.described == "1 line of p␛[2J▯y"
