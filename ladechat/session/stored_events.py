"""The events of a recording, in little memory: each is stored as its line until it is accessed."""

from collections.abc import Iterator, Sequence
from typing import overload

from ladechat.protocol import Event, decode_event


class StoredEvents(Sequence[Event]):
    """A sequence of events, stored as lines that were decoded once for validation, and are decoded again on access.

    A step takes 1 kB as a line, and 7 kB as objects, which Python's garbage collector would scan again and again.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def append(self, line: bytes) -> None:
        """Append a line that holds an event of a known kind."""
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
