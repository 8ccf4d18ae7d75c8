"""The window: it moves on by one, columns are n-grams, nothing that fits is lost."""

from itertools import count

from hypothesis import given, strategies as st

from ladechat.decoder.jacobi import JacobiWindow

widths = st.integers(1, 9)
ngrams = st.integers(2, 7)


def marked_window(width: int, ngram: int) -> JacobiWindow:
    """A window in which every token is unique, so a token tells its place: row r, column i holds 100 r + i."""
    window = JacobiWindow(0, width, ngram, lambda: -1)
    window.rows = [[100 * row + column for column in range(width)] for row in range(ngram - 1)]
    return window


@given(widths, ngrams)
def test_a_new_window_is_full(width: int, ngram: int) -> None:
    window = JacobiWindow(7, width, ngram, count(8).__next__)
    assert window.width == width
    assert window.ngram == ngram
    assert [len(row) for row in window.rows] == [width] * (ngram - 1)
    assert window.rows[0][0] == 7


@given(widths, ngrams)
def test_rows_of_a_new_window_begin_with_the_same_tokens_at_the_same_positions(width: int, ngram: int) -> None:
    window = JacobiWindow(7, width, ngram, count(8).__next__)
    for row, tokens in enumerate(window.rows):
        assert tokens[: max(0, width - row)] == window.rows[0][row:]


@given(widths, ngrams)
def test_ngrams_are_the_suffixes_of_the_columns(width: int, ngram: int) -> None:
    window = marked_window(width, ngram)
    fresh = [100 * (ngram - 1) + column for column in range(width)]
    found = list(window.ngrams(fresh))
    columns = [[100 * row + column for row in range(ngram)] for column in range(width)]
    assert len(found) == len(set(found)) == width * (ngram - 1)
    assert set(found) == {tuple(column[-length:]) for column in columns for length in range(2, ngram + 1)}


@given(widths, ngrams)
def test_advancing_drops_the_oldest_row_and_takes_the_fresh_one_in(width: int, ngram: int) -> None:
    window = marked_window(width, ngram)
    fresh = [100 * (ngram - 1) + column for column in range(width)]
    window.advance(fresh, 1000)
    expected = [[100 * (row + 1) + column for column in range(width)] for row in range(ngram - 1)]
    expected[0][0] = 1000
    assert window.rows == expected


@given(widths, ngrams)
def test_advancing_leaves_the_fresh_tokens_as_they_were(width: int, ngram: int) -> None:
    fresh = list(range(500, 500 + width))
    marked_window(width, ngram).advance(fresh, 1000)
    assert fresh == list(range(500, 500 + width))


@given(widths, ngrams, widths, ngrams)
def test_resizing_keeps_what_fits(width: int, ngram: int, new_width: int, new_ngram: int) -> None:
    window = marked_window(width, ngram)
    window.resize(new_width, new_ngram, lambda: -1)
    assert [len(row) for row in window.rows] == [new_width] * (new_ngram - 1)
    for row in range(min(ngram, new_ngram) - 1):
        kept = min(width, new_width)
        assert window.rows[row][:kept] == [100 * row + column for column in range(kept)]


@given(widths, ngrams, widths, ngrams)
def test_rows_that_resizing_adds_repeat_the_row_above_position_by_position(
    width: int, ngram: int, new_width: int, new_ngram: int
) -> None:
    window = marked_window(width, ngram)
    window.resize(new_width, new_ngram, lambda: -1)
    for row in range(ngram - 1, new_ngram - 1):
        assert window.rows[row][: new_width - 1] == window.rows[row - 1][1:] or new_width == 1
