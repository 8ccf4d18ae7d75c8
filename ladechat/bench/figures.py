"""Computes the figures of a method from its measured answers."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ladechat.bench.measure import Round
from ladechat.bench.methods import TimedAnswer
from ladechat.bench.options import PLAIN
from ladechat.bench.prompts import BenchPrompt


@dataclass(frozen=True, slots=True)
class Difference:
    """An answer that differs from plain decoding, and the index of the first token that differs."""

    prompt: str
    token: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one method over some prompts in all rounds.

    Attributes:
        answers: the number of prompts, each of which was answered once a round.
        tokens: tokens generated in one round.
        passes: forward passes of one round that emitted tokens.
        slots: the slots of these passes together.
        tested: drafted tokens that the model verified in one round, by source; None if unknown.
        accepted: drafted tokens that it accepted, by source.
        tokens_per_second: after the first step; the median over rounds. None if no answer had a second step.
        speedup: `tokens_per_second` ÷ that of plain decoding in the same round; the median over rounds.
        speedup_range: the minimum and the maximum over rounds.
        first_token_seconds: the time of the prefill and the first step; the median over answers.
        differences: answers that differ from plain decoding.
    """

    answers: int
    tokens: int
    passes: int
    slots: int
    tested: dict[str, int] | None
    accepted: dict[str, int]
    tokens_per_second: float | None
    speedup: float | None
    speedup_range: tuple[float, float] | None
    first_token_seconds: float
    differences: list[Difference]

    @property
    def tokens_per_step(self) -> float:
        """S: tokens per forward pass."""
        return self.tokens / self.passes

    @property
    def exact(self) -> bool:
        """Whether every answer equals that of plain decoding."""
        return not self.differences


def figures(name: str, rounds: Sequence[Round], prompts: Sequence[BenchPrompt], kind: str | None = None) -> Figures:
    """Return the figures of a method over all prompts, or over those of one kind."""
    chosen = [index for index, prompt in enumerate(prompts) if kind in (None, prompt.kind)]
    mine, plain = (
        [[answers[who][index] for index in chosen] for answers in rounds]  # one list a round
        for who in (name, PLAIN)
    )
    rates = [rate for answers in mine if (rate := _tokens_per_second(answers)) is not None]
    ratios = [
        rate / plain_rate
        for answers, plain_answers in zip(mine, plain, strict=True)
        if (rate := _tokens_per_second(answers)) and (plain_rate := _tokens_per_second(plain_answers))
    ]
    last = mine[-1]
    return Figures(
        answers=len(chosen),
        tokens=sum(len(answer.tokens) for answer in last),
        passes=sum(answer.passes for answer in last),
        slots=sum(answer.slots for answer in last),
        tested=_total([answer.tested for answer in last]),
        accepted=_total([answer.accepted for answer in last]) or {},
        tokens_per_second=statistics.median(rates) if rates else None,
        speedup=statistics.median(ratios) if ratios else None,
        speedup_range=(min(ratios), max(ratios)) if ratios else None,
        first_token_seconds=statistics.median(answer.first_seconds for answers in mine for answer in answers),
        differences=_differences(mine, [prompts[index] for index in chosen]),
    )


def _tokens_per_second(answers: Sequence[TimedAnswer]) -> float | None:
    """Return the rate of the tokens after the first steps, which include the prefill; None if there are none."""
    tokens = sum(len(answer.tokens) - answer.first_tokens for answer in answers)
    seconds = sum(answer.rest_seconds for answer in answers)
    return tokens / seconds if tokens and seconds else None


def _total(counts: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    known = [count for count in counts if count is not None]
    return dict(sum(map(Counter, known), Counter())) if known else None


def _differences(rounds: Sequence[Sequence[TimedAnswer]], prompts: Sequence[BenchPrompt]) -> list[Difference]:
    """Return, for each prompt with a wrong answer, the earliest difference from the expected answer in any round."""
    found = []
    for index, prompt in enumerate(prompts):
        firsts = [
            _first_difference(answers[index].tokens, prompt.expected)
            for answers in rounds
            if answers[index].tokens != prompt.expected
        ]
        if firsts:
            found.append(Difference(prompt.name, min(firsts)))
    return found


def _first_difference(tokens: Sequence[int], expected: Sequence[int]) -> int:
    pairs = zip(tokens, expected, strict=False)
    return next((index for index, (mine, plain) in enumerate(pairs) if mine != plain), min(len(tokens), len(expected)))
