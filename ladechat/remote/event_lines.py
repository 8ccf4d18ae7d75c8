"""Server-sent events out of bytes, within bounds: neither an endless line nor an endless event fills the memory."""

import re
from collections.abc import Iterator

MOST_EVENT_BYTES = 1 << 20
"""The largest event that is taken: a chunk of an answer has some hundred bytes."""

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a carriage return at the end may be half of a line end


class EventTooLarge(Exception):
    """An event is larger than any part of an answer."""


class EventLines:
    """Takes a stream's bytes as they come, and returns the data of each event once it is whole.

    Names and numbers of events, and comments, by which servers keep a connection alive, are left out.
    """

    def __init__(self) -> None:
        self._unfinished = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the data of the events that end in `part`.

        Raises:
            EventTooLarge: an event, or a line, is longer than `MOST_EVENT_BYTES`.
        """
        *lines, self._unfinished = _LINE_END.split(self._unfinished + part)
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield b"\n".join(self._data)
                self._data.clear()
                self._size = 0
        if self._size + len(self._unfinished) > MOST_EVENT_BYTES:
            raise EventTooLarge

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
        if self._size > MOST_EVENT_BYTES:
            raise EventTooLarge
