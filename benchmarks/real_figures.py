"""The arithmetic of `benchmarks.real`: from what answers took to the figures of a method."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ladechat.bench.methods import TimedAnswer

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


def figures(rows: Sequence[Row], method: str, plain: str, transformers: str) -> dict[str, Any]:
    """What a method did in these rounds on these questions.

    Args:
        rows: a row for each question and round.
        method: whose figures are wanted.
        plain: plain decoding, what everything is compared with.
        transformers: what it is compared with, too.
    """
    answers = [row[method] for row in rows]
    tokens, passes = sum(len(one.tokens) for one in answers), sum(one.passes for one in answers)
    return {
        "answers": len(answers),
        "tokens": tokens,
        "tokens_per_pass": round(tokens / passes, 3),
        "slots_per_pass": round(sum(one.slots for one in answers) / passes, 2),
        "tokens_per_second": _rounded(rate(answers)),
        "to_plain": _rounded(speedup(rows, method, plain)),
        "to_transformers": _rounded(speedup(rows, method, transformers)),
        "first_token_ms": round(1000 * statistics.median(one.first_seconds for one in answers), 1),
        "same_text": sum(row[method].tokens == row[plain].tokens for row in rows),
    }


def rate(answers: Sequence[TimedAnswer]) -> float | None:
    """Tokens per second, of the tokens after the first step; None if there are none."""
    tokens = sum(len(one.tokens) - one.first_tokens for one in answers)
    seconds = sum(one.rest_seconds for one in answers)
    return tokens / seconds if tokens and seconds else None


def speedup(rows: Sequence[Row], method: str, base: str) -> float | None:
    """How many times as fast a method wrote the texts that are the same by both: the ratio of the times in all."""
    same = [row for row in rows if row[method].tokens == row[base].tokens]
    mine, theirs = rate([row[method] for row in same]), rate([row[base] for row in same])
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
