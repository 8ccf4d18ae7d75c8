"""Events on the wire: numbered in order, and those that are told together written at once."""

import os

import pytest

from ladechat.engine.stream import EventStream
from ladechat.protocol import Loading, decode_event


def test_events_that_are_told_together_are_one_write_and_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    written: list[bytes] = []
    write, taken = os.write, 1.0

    def counted(descriptor: int, lines: bytes) -> int:
        """As a pipe that takes a part of what it is given."""
        written.append(lines)
        return write(descriptor, lines[: max(1, int(taken * len(lines)))])

    monkeypatch.setattr(os, "write", counted)
    stream = EventStream(writer)
    stream.emit(Loading(stage=1, stages=3, doing="reading"))
    stream.emit()
    stream.emit(*(Loading(stage=stage, stages=3, doing="ä\n“ü") for stage in (2, 3)))
    assert len(written) == 2
    taken = 0.4
    stream.emit(Loading(stage=3, stages=3, doing="done"))
    assert len(written) > 3
    os.close(writer)
    with os.fdopen(reader, "rb") as lines:
        events = [decode_event(line) for line in lines]
    told = [(event.seq, event.stage, event.doing) for event in events if isinstance(event, Loading)]
    assert told == [(0, 1, "reading"), (1, 2, "ä\n“ü"), (2, 3, "ä\n“ü"), (3, 3, "done")]
    times = [event.t for event in events if event is not None]
    assert times == sorted(times)
