"""The events of a recording, in little memory: each is the line that it was read from until somebody looks at it."""

from collections.abc import Iterator, Sequence
from typing import overload

from ladechat.protocol import Event, decode_event


class StoredEvents(Sequence[Event]):
    """Lines that were decoded once, to see that they are events, and are decoded again where they are needed.

    A step takes 1 kB as a line, and 7 kB as objects, through all of which Python looks for garbage again and again.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def append(self, line: bytes) -> None:
        """Add a line that is an event of a kind that this version knows."""
        self._lines.append(line)

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...

    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        if isinstance(place, slice):
            return [_event(line) for line in self._lines[place]]
        return _event(self._lines[place])

    def __iter__(self) -> Iterator[Event]:
        return map(_event, self._lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)


def _event(line: bytes) -> Event:
    event = decode_event(line)
    assert event is not None
    return event
