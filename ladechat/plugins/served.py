"""The requests of an engine's batch, recognised by their tokens, each with drafters of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import Drafter, Proposal, Room
from ladechat.tuning.learning import AcceptanceRates

Tokens = NDArray[np.int32]


class ServedRequest:
    """The text of one request, and what its drafters propose after it. They begin with the last `most` tokens, and anew
    once they have read twice as many.
    """

    def __init__(self, text: Tokens, most: int, drafters: Callable[[], Sequence[Drafter]]) -> None:
        self._most, self._make = most, drafters
        self._known = text.copy()
        """All of the text, with room for more at its end."""
        self._length = len(text)
        self._proposals: Sequence[Proposal] = ()
        self._begin()

    def precedes(self, text: Tokens) -> bool:
        """Return whether a text begins with this one."""
        return self._length <= len(text) and np.array_equal(self._known[: self._length], text[: self._length])

    def read(self, text: Tokens, rates: AcceptanceRates) -> None:
        """Read the new tokens of a text that this one precedes, and judge the latest proposals by them."""
        new = text[self._length :].tolist()
        for proposal in self._proposals:
            rates.observe(proposal.nodes, new)
        self._proposals = ()
        if len(text) > len(self._known):
            self._known = np.concatenate([text, np.empty(len(text) // 2, text.dtype)])
        else:
            self._known[self._length : len(text)] = text[self._length :]
        self._length = len(text)
        self._text += new
        if len(self._text) > 2 * self._most:
            self._begin()

    def propose(self, most: int) -> Sequence[Proposal]:
        """Return what the drafters propose: chains of up to `most` tokens."""
        room = Room(most + 1, most + 1)
        self._proposals = [drafter.propose(room) for drafter in self._drafters]
        return self._proposals

    def _begin(self) -> None:
        self._text: list[int] = self._known[max(0, self._length - self._most) : self._length].tolist()
        self._drafters = self._make()
        for drafter in self._drafters:
            drafter.begin(self._text, len(self._text))


class ServedRequests:
    """Finds the request of each row of a batch. Rows have no names: a request is the one whose text a row's begins
    with. Most stay in their row; some are moved to that of a request that has ended.

    Requests that are gone are remembered until others take their room: one may have been interrupted, and a
    conversation goes on with the text of its last request. At least as many as a batch has rows are remembered.
    """

    def __init__(self, most: int, new: Callable[[Tokens], ServedRequest]) -> None:
        self._most, self._new = most, new
        self._rows: dict[int, ServedRequest] = {}
        """Those of the latest batch."""
        self._gone: list[ServedRequest] = []
        """The others, those gone the longest first."""

    def __iter__(self) -> Iterator[ServedRequest]:
        return iter([*self._gone, *self._rows.values()])

    def find(self, texts: Mapping[int, Tokens]) -> tuple[dict[int, ServedRequest], bool]:
        """Return the requests of a batch by row, and whether all of them were in the batch before, too."""
        before = self._rows
        found = {row: before[row] for row, text in texts.items() if row in before and before[row].precedes(text)}
        others = [request for row, request in before.items() if row not in found]
        same = True
        for row, text in texts.items():
            if row not in found:
                moved = _taken_from(others, text)
                same = same and moved is not None
                found[row] = moved or _taken_from(self._gone, text) or self._new(text)
        self._rows = found
        self._gone = [*self._gone, *others][max(0, len(found) + len(self._gone) + len(others) - self._most) :]
        return found, same


def _taken_from(requests: list[ServedRequest], text: Tokens) -> ServedRequest | None:
    """Remove and return the latest request that precedes a text."""
    for index in reversed(range(len(requests))):
        if requests[index].precedes(text):
            return requests.pop(index)
    return None
