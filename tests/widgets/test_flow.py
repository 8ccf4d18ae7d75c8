"""Wrapping loses nothing, exceeds no width, and does not depend on how the text arrived."""

import unicodedata
from itertools import pairwise

from hypothesis import given, strategies as st

from ladechat.widgets.cells import cell_len, joins_left
from ladechat.widgets.flow import PLAIN, TAB, Flow, Ink, Line, safe

SAMPLES = st.sampled_from([
    "a", "word", "  ", " ", "\n", "\n\n", ". ", "\t", "\r\n", "x" * 30, "\x1b[31m", "\x07", "\x00", "\r", "漢字",
    "日本語の文", "、", "한국어", "ｗ", "é", "é", "ञ्ञ", "हिन्दी", "ि", "\u0301", "🙂", "👩‍👩‍👧", "👍🏽", "🇩🇪", "❤️",
    "\u200b", "\u202e",
])  # fmt: skip
TEXTS = st.lists(SAMPLES | st.text("ab ", max_size=4) | st.text(max_size=8), max_size=25).map("".join)
WIDTHS = st.integers(2, 40)


def flowed(pieces: list[str], width: int) -> list[Line]:
    flow = Flow(width)
    for piece in pieces:
        flow.extend([(piece, PLAIN)])
    return flow.lines


def joined(lines: list[Line]) -> str:
    return "".join(line.text + line.joint for line in lines).removesuffix("\n")


@given(TEXTS, WIDTHS)
def test_no_line_is_wider_than_the_width(text: str, width: int) -> None:
    assert all(cell_len(line.text) <= width for line in flowed([text], width))


@given(TEXTS, WIDTHS)
def test_lines_and_what_stood_between_them_are_the_text(text: str, width: int) -> None:
    assert joined(flowed([text], width)) == safe(text)


@given(st.lists(TEXTS, max_size=6), WIDTHS)
def test_it_does_not_matter_in_which_pieces_the_text_comes(texts: list[str], width: int) -> None:
    pieces = [safe(text) for text in texts]
    assert flowed(pieces, width) == flowed(["".join(pieces)], width)


@given(st.lists(TEXTS, max_size=6), WIDTHS)
def test_lines_above_the_first_changed_one_are_as_they_were(pieces: list[str], width: int) -> None:
    flow = Flow(width)
    for piece in pieces:
        before = [(line.text, line.joint) for line in flow.lines]
        first = flow.extend([(piece, PLAIN)])
        assert [(line.text, line.joint) for line in flow.lines[:first]] == before[:first]


@given(TEXTS, WIDTHS)
def test_no_control_character_is_left(text: str, width: int) -> None:
    left = "".join(line.text + line.joint.replace("\n", "") for line in flowed([text], width))
    assert [c for c in left if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}] == []


@given(st.lists(st.text("abcdefgh,.", min_size=1, max_size=12), max_size=20), st.integers(12, 40))
def test_words_that_fit_are_not_split_and_single_spaces_do_not_begin_a_line(words: list[str], width: int) -> None:
    lines = flowed([" ".join(words)], width)
    assert [word for line in lines for word in line.text.split(" ") if word] == words
    assert not any(line.text.startswith(" ") for line in lines)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=20), st.integers(12, 40))
def test_lines_are_filled_as_far_as_words_allow(words: list[str], width: int) -> None:
    lines = flowed([" ".join(words)], width)
    for line, following in pairwise(lines):
        assert cell_len(line.text) + 1 + cell_len(following.text.split(" ")[0]) > width


def test_no_line_of_figures_begins_with_the_mark_between_them() -> None:
    figures = "95 tokens · 52 passes · 1.83 tokens a pass · 41 tok/s · 12 drafts remembered from answers · stopped"
    for width in range(20, 90):
        flow = Flow(width)
        flow.extend([(figures, Ink("muted"))])
        assert joined(flow.lines) == figures
        assert not any(line.text.startswith("·") or cell_len(line.text) > width for line in flow.lines)


def test_a_word_longer_than_a_line_is_split_with_nothing_between() -> None:
    assert [(line.text, line.joint) for line in flowed(["abcdefghij"], 4)] == [("abcd", ""), ("efgh", ""), ("ij", "\n")]


def test_a_space_that_has_no_room_still_parts_what_comes_next() -> None:
    assert joined(flowed(["ab "], 2)) == "ab "
    assert [line.text for line in flowed(["ab ", "cd"], 2)] == ["ab", "cd"]
    assert [line.text for line in flowed(["ab ", "cd"], 4)] == ["ab", "cd"]


@given(TEXTS, st.integers(6, 40))
def test_no_letter_is_parted_from_its_marks(text: str, width: int) -> None:
    for line, following in pairwise(flowed([text], width)):
        parted = not line.joint and joins_left((following.text or "x")[0])
        assert not parted or all(map(joins_left, line.text[1:]))  # one letter with more marks than fit into a line


def test_a_vowel_sign_goes_with_its_letter_into_the_next_line() -> None:
    assert [line.text for line in flowed(["काकाका"], 5)] == ["काका", "का"]


def test_a_mark_wears_the_ink_of_its_letter_also_when_another_step_brought_it() -> None:
    one, two = Ink("step", 0, 2), Ink("step", 1, 3)
    flow = Flow(20)
    flow.extend([("e", one)])
    flow.extend([("\u0301a", two)])
    assert flow.lines[-1].runs == (("e\u0301", one), ("a", two))


def test_the_indent_of_code_is_kept() -> None:
    assert [line.text for line in flowed(["def f():\n    return 1"], 40)] == ["def f():", "    return 1"]
    assert [line.text for line in flowed(["\tif x:"], 40)] == [TAB + "if x:"]


def test_each_character_keeps_the_ink_of_its_piece_across_lines() -> None:
    one, two = Ink("step", 0, 2), Ink("step", 1, 3)
    flow = Flow(6)
    flow.extend([("ab cd", one)])
    flow.extend([(" efgh", two)])
    assert [line.runs for line in flow.lines] == [(("ab cd", one),), (("efgh", two),)]
    flow.extend([("ij", one)])
    assert flow.lines[-1].runs == (("efgh", two), ("ij", one))


def test_every_space_is_shown_as_a_space_as_wide_as_it_is() -> None:
    assert safe("Bonjour\u00a0! 10\u202fkm") == "Bonjour ! 10 km"
    assert safe("\u3000全角") == "  全角"


def test_what_only_tells_how_letters_join_or_break_is_not_shown() -> None:
    assert safe("\ufeffmi\u200ckh co\u00adop a\u200bb c\u2060d\u200f") == "mikh coop ab cd"


def test_what_could_turn_the_text_around_stays_visible() -> None:
    assert safe("a\u202eb\u2066c") == "a▯b▯c"
