"""What comes from a terminal: whatever bytes they are, keys go on."""

import pytest
from textual import events

from ladechat.screen_driver import LEAVING_KEYS, Reader


def keys(reader: Reader, *parts: bytes) -> list[str]:
    """What parts that are read one after the other mean: keys by name or as they are typed, pastes as text."""
    found: list[str] = []
    for message in (message for part in parts for message in reader.read(part)):
        if isinstance(message, events.Key):
            found.append(message.character if message.is_printable and message.character else message.key)
        elif isinstance(message, events.Paste):
            found.append(message.text)
    return found


def test_a_byte_that_is_not_utf_8_is_replaced_and_the_next_keys_come() -> None:
    reader = Reader()
    assert keys(reader, b"a\xffb") == ["a", "\N{REPLACEMENT CHARACTER}", "b"]
    assert keys(reader, b"\xc3", b"\xa9") == ["é"]
    assert keys(reader, b"\xc3", b"x") == ["\N{REPLACEMENT CHARACTER}", "x"]


def test_in_a_paste_too() -> None:
    assert keys(Reader(), b"\x1b[200~caf\xe9\x1b[201~x") == ["caf\N{REPLACEMENT CHARACTER}", "x"]


@pytest.mark.parametrize("sequence", [b"\x1b[99999999;1u", b"\x1b[1;1:99999999999;1u"])
def test_a_key_of_a_number_that_no_character_has_is_left_out(sequence: bytes) -> None:
    reader = Reader()
    keys(reader, sequence)
    assert keys(reader, b"a") == ["a"]


@pytest.mark.parametrize(("key", "name"), zip(LEAVING_KEYS, ["ctrl+c", "ctrl+q"] * 2, strict=True))
def test_a_paste_that_never_ends_lets_the_keys_through_that_leave(key: str, name: str) -> None:
    reader = Reader()
    pasted, pressed = keys(reader, b"\x1b[20", b"0~lines\r", b"of a file", key.encode())
    assert (pasted, pressed) == (
        "lines\rof a file",
        "ctrl+c" if key in (LEAVING_KEYS[0], LEAVING_KEYS[2]) else "ctrl+q",
    )
    assert keys(reader, b"a", b"\x1b[200~b\x1b[201~") == ["a", "b"]


def test_what_is_pasted_may_hold_any_character() -> None:
    assert keys(Reader(), b"\x1b[200~one\x11two", b"\x03 three\x1b[2", b"01~x") == ["one\x11two\x03 three", "x"]
