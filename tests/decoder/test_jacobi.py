"""The window: positions stay put, columns are n-grams, nothing that fits is lost."""

from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.jacobi import JacobiWindow

widths = st.integers(1, 9)
ngrams = st.integers(2, 7)


def marked_window(width: int, ngram: int) -> JacobiWindow:
    """A window in which every token is unique, so a token tells its place: row r, column i holds 100 r + i."""
    window = JacobiWindow(0, width, ngram, lambda _: -1)
    window.rows = [[100 * row + column for column in range(width)] for row in range(ngram - 1)]
    return window


@given(widths, ngrams)
def test_a_new_window_is_full(width: int, ngram: int) -> None:
    window = JacobiWindow(7, width, ngram, lambda token: token + 1)
    assert window.width == width
    assert window.ngram == ngram
    assert [len(row) for row in window.rows] == [width] * (ngram - 1)
    assert window.rows[0][0] == 7


@given(widths, ngrams)
def test_a_new_window_guesses_the_same_token_wherever_it_guesses_a_position(width: int, ngram: int) -> None:
    window = JacobiWindow(7, width, ngram, lambda token: token + 1)
    for row, tokens in enumerate(window.rows):
        assert tokens == [7 + row + column for column in range(width)]


@given(widths, ngrams)
def test_ngrams_are_the_lower_ends_of_the_columns(width: int, ngram: int) -> None:
    window = marked_window(width, ngram)
    fresh = [100 * (ngram - 1) + column for column in range(width)]
    found = list(window.ngrams(fresh))
    columns = [[100 * row + column for row in range(ngram)] for column in range(width)]
    assert len(found) == len(set(found)) == width * (ngram - 1)
    assert set(found) == {tuple(column[-length:]) for column in columns for length in range(2, ngram + 1)}


@given(widths, ngrams, st.integers(1, 9), st.data())
def test_advancing_keeps_every_token_at_its_position(
    width: int, ngram: int, accepted: int, data: st.DataObject
) -> None:
    accepted = min(accepted, ngram)
    window = marked_window(width, ngram)
    fresh = [100 * (ngram - 1) + column for column in range(width)]
    window.advance(fresh, list(range(1000, 1000 + accepted)), lambda _: -1)
    assert [len(row) for row in window.rows] == [width] * (ngram - 1)
    for row, tokens in enumerate(window.rows):
        for column, token in enumerate(tokens):
            if token >= 1000 or token == -1:
                continue
            before_row, before_column = divmod(token, 100)
            # Position of a place is row + column, counted from the last token, which moved by `accepted`.
            assert before_row + before_column == row + column + accepted


@given(widths, ngrams, st.integers(1, 6))
def test_advancing_drops_the_oldest_row_and_takes_the_fresh_one_in(width: int, ngram: int, accepted: int) -> None:
    window = marked_window(width, ngram)
    fresh = [100 * (ngram - 1) + column for column in range(width)]
    window.advance(fresh, list(range(1000, 1000 + accepted)), lambda _: -1)
    shift = accepted - 1
    for row, tokens in enumerate(window.rows):
        kept = [100 * (row + 1) + column for column in range(shift, width)]
        first = 1 if row == 0 else 0  # row 0, column 0 is the last accepted token
        assert tokens[first : len(kept)] == kept[first:]
    assert window.rows[0][0] == 1000 + accepted - 1


def test_columns_entering_at_the_right_take_what_the_newer_row_says_of_the_position() -> None:
    window = marked_window(4, 4)
    window.advance([300, 301, 302, 303], [1000, 1001, 1002], lambda _: -1)
    assert window.rows == [[1002, 103, 203, 303], [202, 203, 303, -1], [302, 303, -1, -1]]


@given(widths, ngrams, widths, ngrams)
def test_resizing_keeps_what_fits(width: int, ngram: int, new_width: int, new_ngram: int) -> None:
    window = marked_window(width, ngram)
    window.resize(new_width, new_ngram, lambda _: -1)
    assert [len(row) for row in window.rows] == [new_width] * (new_ngram - 1)
    for row in range(min(ngram, new_ngram) - 1):
        kept = min(width, new_width)
        assert window.rows[row][:kept] == [100 * row + column for column in range(kept)]


@given(widths, ngrams, widths, ngrams)
def test_rows_that_resizing_adds_repeat_the_row_above_position_by_position(
    width: int, ngram: int, new_width: int, new_ngram: int
) -> None:
    window = marked_window(width, ngram)
    window.resize(new_width, new_ngram, lambda _: -1)
    for row in range(ngram - 1, new_ngram - 1):
        assert window.rows[row][: new_width - 1] == window.rows[row - 1][1:] or new_width == 1
