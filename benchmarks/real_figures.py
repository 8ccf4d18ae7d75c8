"""The arithmetic of `benchmarks.real`: from what answers took to the figures of a method."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.bench.methods import TimedAnswer
from ladechat.bench.options import PLAIN

SEED, RESAMPLES = 0, 2000

Row = Mapping[str, TimedAnswer]
"""What each method, by its name, answered to a question in one round."""


@dataclass(frozen=True)
class Difference:
    """An answer that is not that of plain decoding.

    Attributes:
        question: its id.
        token: the index of the first token that is another.
        tokens: plain decoding's token there and the method's; None where the answer has ended.
    """

    question: int
    token: int
    tokens: tuple[int | None, int | None]


class Resampled:
    """The questions drawn again and again, each time as many, with replacement: how far figures depend on them.

    Args:
        questions: the id of the question of each row.
    """

    def __init__(self, questions: Sequence[int]) -> None:
        ids, index = np.unique(np.array(questions), return_inverse=True)
        draws = np.random.default_rng(SEED).multinomial(len(ids), np.full(len(ids), 1 / len(ids)), RESAMPLES)
        self._weights: NDArray[np.int64] = draws[:, index]

    def interval(self, rows: Sequence[Row], method: str, base: str | None = None) -> list[float] | None:
        """Return where 95 % of the rates of a method lie or, with a base, of the ratios to the rates of that."""
        rates = self._rates([row[method] for row in rows])
        if base is not None:
            rates = rates / self._rates([row[base] for row in rows])
        finite = rates[np.isfinite(rates)]
        return [round(float(end), 3) for end in np.percentile(finite, (2.5, 97.5))] if finite.size else None

    @np.errstate(divide="ignore", invalid="ignore")
    def _rates(self, answers: Sequence[TimedAnswer]) -> NDArray[np.float64]:
        tokens = np.array([len(one.tokens) - one.first_tokens for one in answers])
        seconds = np.array([one.rest_seconds for one in answers])
        rates: NDArray[np.float64] = (self._weights @ tokens) / (self._weights @ seconds)
        return rates


def figures(rows: Sequence[Row], method: str, bases: Mapping[str, str], own: str) -> dict[str, Any]:
    """What a method did in these rounds on these questions.

    Args:
        rows: a row for each question and round.
        method: whose figures are wanted.
        bases: the methods that it is compared with, by the name of the figure.
        own: plain decoding on the same weights by the same implementation.
    """
    answers = [row[method] for row in rows]
    tokens, passes = sum(len(one.tokens) for one in answers), sum(one.passes for one in answers)
    return {
        "answers": len(answers),
        "tokens": tokens,
        "tokens_per_pass": round(tokens / passes, 3),
        "slots_per_pass": round(sum(one.slots for one in answers) / passes, 2),
        "tokens_per_second": _rounded(rate(answers)),
        **{name: _rounded(speedup(rows, method, base)) for name, base in bases.items()},
        "first_token_ms": round(1000 * statistics.median(one.first_seconds for one in answers), 1),
        "same_text": sum(row[method].tokens == row[PLAIN].tokens for row in rows),
        "same_text_as_own_plain": sum(row[method].tokens == row[own].tokens for row in rows),
    }


def comparison(
    rows: Sequence[Row], kinds: Mapping[str, Sequence[Row]], resampled: Resampled, method: str, base: str
) -> dict[str, Any]:
    """How many times as fast a method is as another: over all rows, its interval, and on the least kind of question."""
    by_kind = {kind: found for kind, its in kinds.items() if (found := speedup(its, method, base)) is not None}
    least = min(by_kind, key=by_kind.__getitem__, default=None)
    return {
        "method": method,
        "base": base,
        "ratio": _rounded(speedup(rows, method, base)),
        "interval": resampled.interval(rows, method, base),
        "least_kind": least,
        "least": _rounded(by_kind.get(least) if least else None),
    }


def rate(answers: Sequence[TimedAnswer]) -> float | None:
    """Tokens per second, of the tokens after the first step; None if there are none."""
    tokens = sum(len(one.tokens) - one.first_tokens for one in answers)
    seconds = sum(one.rest_seconds for one in answers)
    return tokens / seconds if tokens and seconds else None


def speedup(rows: Sequence[Row], method: str, base: str) -> float | None:
    """How many times as many tokens per second a method wrote as another, in answer to the same questions."""
    mine, theirs = rate([row[method] for row in rows]), rate([row[base] for row in rows])
    return mine / theirs if mine and theirs else None


def difference(question: int, answer: TimedAnswer, plain: TimedAnswer) -> Difference | None:
    """Where an answer parts from that of plain decoding; None if it is the same."""
    if answer.tokens == plain.tokens:
        return None
    pairs = zip(plain.tokens, answer.tokens, strict=False)
    shorter = min(len(plain.tokens), len(answer.tokens))
    index = next((at for at, (one, other) in enumerate(pairs) if one != other), shorter)
    expected, found = (one.tokens[index] if index < len(one.tokens) else None for one in (plain, answer))
    return Difference(question, index, (expected, found))


def tie(one: Sequence[float], other: Sequence[float], tokens: tuple[int | None, int | None]) -> dict[str, Any]:
    """Whether two tokens nearly tie: their logits differ by at most twice what two computations of them differ by.

    Args:
        one: (vocabulary,) the logits of one implementation.
        other: (vocabulary,) those of another, after the same text.
        tokens: the two; one that is None has no logit, so there is no tie.
    """
    if None in tokens:
        return {"margin": None, "near_tie": False}
    first, second = (one[token] for token in tokens if token is not None)
    rounding = max(abs(mine - theirs) for mine, theirs in zip(one, other, strict=True))
    return {"margin": abs(first - second), "rounding": rounding, "near_tie": abs(first - second) <= 2 * rounding}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
