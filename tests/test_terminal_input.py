"""What comes from a terminal: whatever bytes they are, keys go on."""

from itertools import count, pairwise

import pytest
from hypothesis import assume, given, strategies as st
from textual import events

from ladechat.terminal_input import LEAVING_KEYS, PASTE_BEGINS, PASTE_ENDS, InputReader

PAUSE = b""
PASTED = st.lists(
    st.sampled_from(
        [*"\x1b[]200~201~;5umMIO\r\n\t\x00\x7f/q é🙂", "\x1b[32mOK\x1b[0m", "\x1b[20", "\x1b[I", PASTE_BEGINS]
    )
    | st.characters(exclude_categories=["Cs"]),
    max_size=20,
).map("".join)
PLACES = st.lists(st.integers(0, 60))


def pieces(data: bytes, places: list[int]) -> list[bytes]:
    """The bytes, split in these places."""
    ends = sorted({0, len(data), *(place for place in places if place < len(data))})
    return [data[start:end] for start, end in pairwise(ends)]


def keys(reader: InputReader, *parts: bytes) -> list[str]:
    """What parts that are read one after the other mean: keys by name or as they are typed, pastes as text."""
    found: list[str] = []
    for message in (message for part in parts for message in reader.read(part)):
        if isinstance(message, events.Key):
            found.append(message.character if message.is_printable and message.character else message.key)
        elif isinstance(message, events.Paste):
            found.append(message.text)
    return found


def test_a_byte_that_is_not_utf_8_is_replaced_and_the_next_keys_come() -> None:
    reader = InputReader()
    assert keys(reader, b"a\xffb") == ["a", "\N{REPLACEMENT CHARACTER}", "b"]
    assert keys(reader, b"\xc3", b"\xa9") == ["é"]
    assert keys(reader, b"\xc3", b"x") == ["\N{REPLACEMENT CHARACTER}", "x"]


def test_in_a_paste_too() -> None:
    assert keys(InputReader(), b"\x1b[200~caf\xe9\x1b[201~x") == ["caf\N{REPLACEMENT CHARACTER}", "x"]


@pytest.mark.parametrize("sequence", [b"\x1b[99999999;1u", b"\x1b[1;1:99999999999;1u"])
def test_a_key_of_a_number_that_no_character_has_is_left_out(sequence: bytes) -> None:
    reader = InputReader()
    keys(reader, sequence)
    assert keys(reader, b"a") == ["a"]


@pytest.mark.parametrize("sequence", [b"\x1b[99999999;1u", b"\x1b[1;1:99999999999;1u"])
def test_what_comes_with_such_a_key_is_not_lost(sequence: bytes) -> None:
    assert keys(InputReader(), sequence + b"a\x1b[200~two\rlines\x1b[201~b") == ["a", "two\rlines", "b"]


def clock(patch: pytest.MonkeyPatch) -> None:
    """A pause, wherever there is one, is long."""
    times = count()
    patch.setattr("textual._parser.get_time", lambda: float(next(times)))


@given(PASTED, PLACES)
def test_all_between_the_marks_of_a_paste_is_the_paste_wherever_it_is_split(text: str, places: list[int]) -> None:
    assume(PASTE_ENDS not in text)
    data = f"a{PASTE_BEGINS}{text}{PASTE_ENDS}b{PASTE_BEGINS}c{PASTE_ENDS}".encode()
    assert keys(InputReader(), *pieces(data, places)) == ["a", text, "b", "c"]


@given(PASTED, PLACES)
def test_a_line_that_pauses_anywhere_in_a_paste_does_not_end_it(text: str, places: list[int]) -> None:
    assume(PASTE_ENDS not in text and not any(key in text for key in LEAVING_KEYS))
    begun, data = PASTE_BEGINS[:3].encode(), f"{PASTE_BEGINS[3:]}{text}{PASTE_ENDS}b".encode()
    with pytest.MonkeyPatch.context() as patch:
        clock(patch)
        parts = [begun, *pieces(data, places)]
        assert keys(InputReader(), *[one for part in parts for one in (part, PAUSE)]) == [text, "b"]


def test_escape_is_a_key_where_nothing_follows_and_what_is_typed_after_it_begins_no_paste(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock(monkeypatch)
    assert keys(InputReader(), b"\x1b", PAUSE, b"[200~") == ["escape", *"[200~"]


@pytest.mark.parametrize(("key", "name"), zip(LEAVING_KEYS, ["ctrl+c", "ctrl+q"] * 2, strict=True))
def test_a_paste_that_never_ends_lets_the_keys_through_that_leave(key: str, name: str) -> None:
    reader = InputReader()
    pasted, pressed = keys(reader, b"\x1b[20", b"0~lines\x1b[32m\r", b"of a file", PAUSE, key.encode(), PAUSE)
    assert (pasted, pressed) == ("lines\x1b[32m\rof a file", name)
    assert keys(reader, b"a", b"\x1b[200~b\x1b[201~") == ["a", "b"]


@pytest.mark.parametrize("key", LEAVING_KEYS)
def test_the_same_characters_are_text_in_a_paste_that_goes_on(key: str) -> None:
    parts = b"\x1b[200~one", key.encode(), b"two" + key.encode(), b"\x1b[2", b"01~x"
    assert keys(InputReader(), *parts) == [f"one{key}two{key}", "x"]


def test_alt_and_enter_are_a_key_of_their_own() -> None:
    reader = InputReader()
    assert keys(reader, b"a\x1b\rb", b"\x1b[13;3u", b"\r", PAUSE) == ["a", "alt+enter", "b", "alt+enter", "enter"]
