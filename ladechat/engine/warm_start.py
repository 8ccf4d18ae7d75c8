"""A warm start: what drafting learns from a model's answers is saved, so that the next session begins with it.

It consists of the answers, for suffix matching, the tables of token recycling, and the acceptance rates of drafts. It
changes how many passes a text takes, never the text.
"""

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.recycling import CHANCES, CHANCES_AFTER_TWO, UNKNOWN
from ladechat.files import PRIVATE, read_saved, replace_file
from ladechat.registry import Shared
from ladechat.tuning.learning import RATE_MEMORY, RunningMean

VERSION = "1"
"""Of the file's format. It is part of the file's name: a file of another version is not read."""
MOST_TOKENS = 1 << 15
"""The most tokens of answers that are saved; the earliest answers are left out."""

logger = logging.getLogger(__name__)

_Rate = tuple[
    tuple[str | int, ...], Annotated[float, msgspec.Meta(ge=0.0, le=1.0)], Annotated[float, msgspec.Meta(gt=0.0)]
]


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answers: list[list[int]]
    after_one: bytes
    after_two: bytes
    rates: list[_Rate]


class WarmStart:
    """Fills what the decoders of a model share, of which none is made yet, from a file of its own, and saves it there.

    Engines may share the file: each adds its answers to those that it finds there; tables and rates are those of the
    one that saved last. Where the file is gone when it is to be replaced, all that was learnt before is forgotten.
    """

    def __init__(self, file: Path, shared: Shared, vocabulary: int) -> None:
        self._file, self._shared, self._vocabulary = file, shared, vocabulary
        self._new: list[Sequence[int]] = []
        saved = self._read()
        self._exists = saved is not None
        if saved is not None:
            shared.answers.extend(saved.answers)
            shared.successors.restore(*_tables(saved))
            shared.rates.by_kind.update((kind, RunningMean(RATE_MEMORY, *rate)) for kind, *rate in saved.rates)

    def add(self, answer: Sequence[int]) -> None:
        """Add an answer, a sequence of token ids, to those that the next `save` saves."""
        self._new.append(answer)

    def save(self) -> None:
        """Save new answers with what was learnt from them; without any, do nothing.

        Where the file cannot be written, the next session begins with an earlier state.
        """
        if not self._new:
            return
        saved = self._read()
        if saved is None and self._exists:
            self._shared.forget()
        shared, new = self._shared, [list(answer) for answer in self._new]
        self._new.clear()
        answers = _latest([*(saved.answers if saved else ()), *new])
        shared.answers[:] = answers
        after_one, after_two = shared.successors.tables()
        content = _Content(
            answers=answers,
            after_one=after_one.astype("<i4").tobytes(),
            after_two=after_two.astype("<i4").tobytes(),
            rates=[
                (kind, one.value, one.weight) for kind, one in shared.rates.by_kind.items() if isinstance(kind, tuple)
            ],
        )
        with contextlib.suppress(OSError):
            replace_file(self._file, msgspec.msgpack.encode(content), PRIVATE)
            self._exists = True

    def _read(self) -> _Content | None:
        content, problem = read_saved(self._file, self._understood)
        if problem:
            logger.warning("%s", problem)
        return content

    def _understood(self, text: bytes) -> _Content:
        content = msgspec.msgpack.decode(text, type=_Content)
        after_one, after_two = _tables(content)
        texts = np.array([token for answer in content.answers for token in answer], np.int64)
        for ids, least in ((texts, 0), (after_one[:, 0], 0), (after_one, UNKNOWN), (after_two, UNKNOWN)):
            if ids.size and not least <= ids.min() <= ids.max() < self._vocabulary:
                raise ValueError("a token that the model does not have")
        return content


def _tables(content: _Content) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the tables of token recycling as `Successors.tables` does."""
    after_one, after_two = (np.frombuffer(some, "<i4") for some in (content.after_one, content.after_two))
    return after_one.reshape(-1, 1 + len(CHANCES)), after_two.reshape(-1, 2 + len(CHANCES_AFTER_TWO))


def _latest(answers: Sequence[list[int]]) -> list[list[int]]:
    """Return the latest answers, of `MOST_TOKENS` together."""
    count, first = 0, len(answers)
    while first and count + len(answers[first - 1]) <= MOST_TOKENS:
        first -= 1
        count += len(answers[first])
    return list(answers[first:])
