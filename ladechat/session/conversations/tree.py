"""A conversation as a tree: when a question is edited or asked again, what it replaces stays as a variant."""

from collections import defaultdict
from dataclasses import dataclass, field

from ladechat.protocol import Exchange

ROOT = -1
"""Stands for the exchange before the first one."""
UNREADABLE = Exchange(question="", answer="", token_ids=[], model="", decoder="")
"""The placeholder of an exchange that could not be read. It has no parent, so it is never shown."""


@dataclass
class ExchangeTree:
    """The exchanges of a conversation, numbered from 0 in the order of their answers; a path of them is shown.

    Attributes:
        times: of the answers, in ISO 8601; "" if unknown.
        parents: of each exchange, the one before it.
        path: the exchanges that are shown, oldest first.
        deleted: those that are hidden with all after them, in the order of their deletion.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    times: list[str] = field(default_factory=list, compare=False)
    parents: dict[int, int] = field(default_factory=dict)
    path: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)

    @property
    def variants(self) -> dict[int, list[int]]:
        """For each exchange and `ROOT`, the exchanges that follow it directly, in order, without deleted ones."""
        variants = defaultdict[int, list[int]](list)
        for number, before in self.parents.items():
            if number not in self.deleted:
                variants[before].append(number)
        return variants

    @property
    def hidden(self) -> list[int]:
        """Other variants and what follows them: all that is neither shown nor deleted, nor behind what was deleted."""
        there = {ROOT}
        for number, before in self.parents.items():
            if before in there and number not in self.deleted:
                there.add(number)
        return sorted(there - {ROOT, *self.path})

    def add(self, exchange: Exchange, after: int, time: str = "") -> int:
        """Add an exchange and show it; return its number."""
        number = len(self.exchanges)
        self.exchanges.append(exchange)
        self.times.append(time)
        self.parents[number] = after
        if after == (self.path[-1] if self.path else ROOT):
            self.path.append(number)
        else:
            self.show(number)
        return number

    def skip(self) -> int:
        """Leave out a number, for an exchange that cannot be read; return it."""
        self.exchanges.append(UNREADABLE)
        self.times += self.times[-1:] or [""]
        return len(self.exchanges) - 1

    def show(self, number: int) -> None:
        """Show an exchange, also a deleted one, and the latest after it."""
        self.path = []
        while number != ROOT:
            self.path.insert(0, number)
            number = self.parents[number]
        self.deleted = [one for one in self.deleted if one not in self.path]
        variants = self.variants
        while after := variants[self.path[-1]]:
            self.path.append(after[-1])

    def delete(self, number: int) -> None:
        """Hide a shown exchange, and show the variant before it, or else the one after it. A first exchange stays if it
        has no other variant.
        """
        variants = self.variants[self.parents[number]]
        place = variants.index(number)
        others = [*variants[:place][-1:], *variants[place + 1 :]]
        if others or number != self.path[0]:
            self.deleted.append(number)
            self.path = self.path[: self.path.index(number)]
        if others:
            self.show(others[0])
