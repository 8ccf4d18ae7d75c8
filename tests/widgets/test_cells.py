"""Claims about text in terminal cells."""

import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from ladechat.widgets.cells import ELLIPSIS, cell_len, fit, joins_left, printable, shorten, visible

AWKWARD = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\n\t\r\x7f\x85\u2028\u202e\u200d\ufe0f\u0301\u1161\ufffd"),
        st.sampled_from("日本👩🚀❤🏽🇩🇪हिन्दीسلام "),
    ),
    max_size=20,
)


def is_safe(text: str) -> bool:
    return all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"} for c in text)


@given(AWKWARD, st.integers(0, 30))
@example("\u200d", 1)
@example("👩\u200d🚀❤\ufe0f", 3)
@example("\x1b[31m", 4)
def test_fit_has_exactly_the_cells_asked_for_and_nothing_that_moves_the_cursor(text: str, width: int) -> None:
    fitted = fit(text, width)
    assert cell_len(fitted) == width
    assert is_safe(fitted)


@given(AWKWARD)
def test_visible_is_safe_and_never_empty_or_without_width(text: str) -> None:
    shown = visible(text)
    assert is_safe(shown)
    assert cell_len(shown) >= 1
    assert shown == shown.strip(" ")


@given(AWKWARD)
def test_what_is_printable_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.lists(AWKWARD, min_size=1, max_size=6))
def test_pieces_side_by_side_take_the_sum_of_their_cells(pieces: list[str]) -> None:
    shown = [visible(piece) for piece in pieces]
    assert cell_len("".join(shown)) == sum(map(cell_len, shown))


@given(AWKWARD, st.integers(1, 30))
def test_a_shortened_text_says_so(text: str, width: int) -> None:
    short = shorten(text, width)
    assert cell_len(short) <= width
    assert short == printable(text) or short.endswith(ELLIPSIS)


SYMBOLS = [
    (" pool", "·pool"), ("a b ", "a b·"), ("    ", "····"), ("\n", "⏎"), ("\n\n  ", "⏎⏎··"), ("\tx", "⇥x"), ("\x1b[2J",
    "␛[2J"), ("\x00", "␀"), ("", "◌"), ("\u0301", "◌\u0301"), ("\ufffd", "\ufffd"), ("\u202eabc", "▯abc"),
    ("👩\u200d🚀", "👩🚀"), ("🇩🇪", "DE"), ("❤\ufe0f", "❤"), ("👍🏽", "👍"),
]  # fmt: skip


@pytest.mark.parametrize(("piece", "shown"), SYMBOLS)
def test_what_would_not_be_seen_has_a_symbol(piece: str, shown: str) -> None:
    assert visible(piece) == shown


@pytest.mark.parametrize(
    ("text", "cells"),
    [("漢字", 4), ("👩🚀", 4), ("한", 2), ("e\u0301", 1), ("سلام", 4), ("हिन्दी", 5), ("का", 2), ("สวัสดี", 4)],
)
def test_cells_are_those_of_xterm_tmux_and_the_c_library(text: str, cells: int) -> None:
    assert cell_len(text) == cells


@given(AWKWARD)
def test_no_text_begins_with_a_mark_that_would_sit_on_what_stands_before_it(text: str) -> None:
    assert not any(joins_left(shown[0]) for shown in (printable(text), visible(text)) if shown)


def test_a_wide_character_that_has_no_room_leaves_room_instead() -> None:
    assert fit("漢字漢", 4) == "漢… "
    assert fit("漢字漢", 5) == "漢字…"
    assert fit("漢", 1) == ELLIPSIS
