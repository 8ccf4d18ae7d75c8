"""Events on the wire: numbered in order, and those that are told together written at once."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, NoReturn

import pytest

from ladechat.engine_process.stream import EventStream
from ladechat.protocol import Loading, decode_event
from tests.waiting import patience, wait_for

LONG = "ä" * 2**20
"""More than a pipe holds."""


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


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BinaryIO, Future[None]]]:
    """A pipe that does not block and is full, and the emitting of an event that is longer than it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    write, refused = os.write, list[int]()

    def noted(descriptor: int, lines: bytes) -> int:
        try:
            return write(descriptor, lines)
        except BlockingIOError:
            refused.append(descriptor)
            raise

    def emit() -> None:
        try:
            EventStream(writer).emit(Loading(stage=1, stages=2, doing=LONG))
        finally:
            os.close(writer)

    monkeypatch.setattr(os, "write", noted)
    with ThreadPoolExecutor() as threads, os.fdopen(reader, "rb") as lines:
        emitting = threads.submit(emit)
        wait_for(lambda: refused)
        yield lines, emitting


def test_an_output_that_does_not_block_is_waited_for_while_it_is_full(full: tuple[BinaryIO, Future[None]]) -> None:
    """Whoever starts an engine may have set that on the pipe that both share."""
    lines, emitting = full
    content = lines.read()
    emitting.result(patience())
    event = decode_event(content)
    assert isinstance(event, Loading) and event.doing == LONG


def test_an_engine_ends_while_it_waits_to_write_when_nobody_reads_any_more(
    full: tuple[BinaryIO, Future[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, emitting = full
    ended: list[int] = []

    def end(code: int) -> NoReturn:
        ended.append(code)
        raise SystemExit

    monkeypatch.setattr(os, "_exit", end)
    lines.close()
    assert isinstance(emitting.exception(patience()), SystemExit) and ended == [0]
