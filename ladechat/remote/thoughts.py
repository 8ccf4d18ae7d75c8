"""Thoughts that a server leaves in the text, between ``<think>`` and ``</think>`` at its beginning, taken apart.

Servers with a reasoning parser do that themselves; others, and SGLang's own `/generate`, do not.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, auto

from ladechat.remote.reports import Ended, Report, Tokens

OPEN, CLOSE = "<think>", "</think>"


class _Place(Enum):
    BEGINNING = auto()
    THOUGHTS = auto()
    ANSWER = auto()


class Thoughts:
    """Marks the thoughts of one answer as such, without the marks around them. Steps that may hold a part of a mark
    wait for the next ones.

    Args:
        begun: whether the prompt has ended with the first mark.
        taken_apart: whether there is nothing to do, as in the rest of an answer.
    """

    def __init__(self, *, begun: bool = False, taken_apart: bool = False) -> None:
        self._place = _Place.ANSWER if taken_apart else _Place.THOUGHTS if begun else _Place.BEGINNING
        self._held: list[Tokens] = []

    def read(self, reported: Report) -> Iterator[Report]:
        """Yield what is certain with a report."""
        if isinstance(reported, Ended):
            yield from self._let_go()
        if not isinstance(reported, Tokens) or self._place is _Place.ANSWER:
            yield reported
        elif reported.reasoning:  # the server has taken them apart
            self._place = _Place.ANSWER
            yield from self._let_go()
            yield reported
        else:
            self._held.append(reported)
            yield from self._certain()

    def _certain(self) -> Iterator[Tokens]:
        """Yield the steps of which it is certain what they are."""
        text = self._text
        if self._place is _Place.BEGINNING:
            begun = text.lstrip()
            if begun != OPEN and OPEN.startswith(begun):  # nothing yet, or a part of the mark
                return
            if not begun.startswith(OPEN):
                self._place = _Place.ANSWER
                yield from self._let_go()
                return
            self._place = _Place.THOUGHTS
            self._cut(len(text) - len(begun), len(OPEN))
            text = self._text
        if (at := text.find(CLOSE)) >= 0:
            yield from self._closed(at)
        else:
            begins = next((at for at in range(len(text)) if CLOSE.startswith(text[at:])), len(text))
            while self._held and (first := len(_text(self._held[0]))) <= begins:
                begins -= first
                yield _as_thought(self._held.pop(0))

    def _closed(self, at: int) -> Iterator[Tokens]:
        """Yield the steps up to the one with the end of the mark, in which the answer may begin."""
        self._cut(at, len(CLOSE))
        while self._held:
            step = self._held.pop(0)
            length = len(_text(step))
            if at > length or (at == length and self._held):
                at -= length
                yield _as_thought(step)
            else:
                yield _divided(step, at)
                break
        self._place = _Place.ANSWER
        yield from self._let_go()

    @property
    def _text(self) -> str:
        return "".join(map(_text, self._held))

    def _cut(self, at: int, count: int) -> None:
        """Take so many characters out of the text of the steps that wait."""
        for place, step in enumerate(self._held):
            pieces = []
            for piece in step.pieces:
                begin, end = min(max(at, 0), len(piece)), min(max(at + count, 0), len(piece))
                pieces.append(piece[:begin] + piece[end:])
                at -= len(piece)
            self._held[place] = replace(step, pieces=pieces)

    def _let_go(self) -> Iterator[Tokens]:
        held, self._held = self._held, []
        yield from map(_as_thought, held) if self._place is _Place.THOUGHTS else held


def _text(step: Tokens) -> str:
    return "".join(step.pieces)


def _as_thought(step: Tokens) -> Tokens:
    return replace(step, reasoning=len(step.pieces))


def _divided(step: Tokens, at: int) -> Tokens:
    """Return a step whose first `at` characters are thoughts. A token with the end of these and the beginning of the
    answer becomes two, unless the one before it has room.
    """
    place = 0
    while place < len(step.pieces) and len(step.pieces[place]) <= at:
        at -= len(step.pieces[place])
        place += 1
    if not at:
        return replace(step, reasoning=place)
    pieces = list(step.pieces)
    thought, text = pieces[place][:at], pieces[place][at:]
    if place and not pieces[place - 1]:
        pieces[place - 1 : place + 1] = [thought, text]
        return replace(step, pieces=pieces, reasoning=place)
    pieces[place : place + 1] = [thought, text]
    token_ids, logprobs = list(step.token_ids), list(step.logprobs)
    token_ids.insert(place, 0)
    logprobs.insert(place, 0.0)
    return replace(step, pieces=pieces, token_ids=token_ids, logprobs=logprobs, reasoning=place + 1)
