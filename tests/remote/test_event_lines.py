"""Events come out whole, however the bytes are cut, and never larger than they may be."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from ladechat.remote.event_lines import MOST_EVENT_BYTES, EventLines, EventTooLarge

STREAM = b': alive\n\nevent: x\nid: 7\ndata: {"a":1}\n\ndata:two\r\ndata: lines\r\n\r\ndata: \xe4\xbd\r\rdata: cut'


def all_of(parts: list[bytes]) -> list[bytes]:
    lines = EventLines()
    return [event for part in parts for event in lines.feed(part)]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_where_the_bytes_are_cut_does_not_matter(places: list[int]) -> None:
    ends = sorted({0, len(STREAM), *places})
    parts = [STREAM[begin:end] for begin, end in pairwise(ends)]
    assert all_of(parts) == [b'{"a":1}', b"two\nlines", b"\xe4\xbd"]


@pytest.mark.parametrize("part", [b"x" * 65_536, b"data: " + b"x" * 65_536 + b"\n"])
def test_neither_an_endless_line_nor_an_endless_event_fills_the_memory(part: bytes) -> None:
    with pytest.raises(EventTooLarge):
        all_of([part] * (2 * MOST_EVENT_BYTES // len(part)))


def test_endless_comments_keep_a_stream_alive_and_take_no_memory() -> None:
    assert all_of([b": alive\n" * 100_000, b"data: 1\n\n"]) == [b"1"]
