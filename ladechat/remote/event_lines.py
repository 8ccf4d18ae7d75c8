"""Server-sent events out of bytes, within bounds: neither an endless line nor an endless event fills the memory."""

import re
from collections.abc import Iterator

MOST_EVENT_BYTES = 1 << 20
"""The largest event that is taken: a chunk of an answer has some hundred bytes."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventTooLarge(Exception):
    """An event is larger than any part of an answer."""


class EventLines:
    """Takes a stream's bytes as they come, and returns the data of each event once it is whole.

    Names and numbers of events, and comments, by which servers keep a connection alive, are left out.
    """

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        """The bytes of both."""
        self._after_return = False

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the data of the events that end in `part`.

        Raises:
            EventTooLarge: an event, or a line, is longer than `MOST_EVENT_BYTES`.
        """
        if self._after_return:  # the other half of a line end
            part = part.removeprefix(b"\n")
        self._after_return = part.endswith(b"\r")
        *ends, rest = _LINE_END.split(part)
        for end in ends:
            line = b"".join((*self._unfinished, end))
            self._unfinished.clear()
            if line:
                self._take(line)
            else:
                if self._data:
                    yield b"\n".join(self._data)
                self._data.clear()
            self._size = sum(map(len, self._data))
        self._unfinished.append(rest)
        self._size += len(rest)
        if self._size > MOST_EVENT_BYTES:
            raise EventTooLarge

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
