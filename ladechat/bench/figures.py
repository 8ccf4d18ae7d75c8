"""From measured answers to the figures of a method."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ladechat.bench.measure import Round
from ladechat.bench.methods import Answer
from ladechat.bench.options import PLAIN
from ladechat.bench.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Difference:
    """An answer that is not the one of plain decoding, and the index of the first token in which it is another."""

    prompt: str
    token: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one method did over some prompts in all rounds.

    Attributes:
        answers: prompts, each of which was answered once a round.
        tokens: generated in one round.
        passes: forward passes of one round that emitted tokens.
        slots: of these passes together.
        tested: drafted tokens that the model judged in one round, by source; None where that is not known.
        accepted: those of them that it confirmed.
        tokens_per_second: after the first step; the median over rounds. None if no answer had a second step.
        speedup: `tokens_per_second` ÷ that of plain decoding in the same round; the median over rounds.
        speedup_range: the least and the greatest over rounds.
        first_token_seconds: reading the prompt and the first step; the median over answers.
        differences: answers that are not those of plain decoding.
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
        """S."""
        return self.tokens / self.passes

    @property
    def exact(self) -> bool:
        """Is every answer that of plain decoding?"""
        return not self.differences


def figures(name: str, rounds: Sequence[Round], prompts: Sequence[Prompt], kind: str | None = None) -> Figures:
    """The figures of a method over all prompts, or over those of one kind."""
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


def _tokens_per_second(answers: Sequence[Answer]) -> float | None:
    """Of the tokens after the first steps, which end the reading of the prompts and take as long as these."""
    tokens = sum(len(answer.tokens) - answer.first_tokens for answer in answers)
    seconds = sum(answer.rest_seconds for answer in answers)
    return tokens / seconds if tokens and seconds else None


def _total(counts: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    known = [count for count in counts if count is not None]
    return dict(sum(map(Counter, known), Counter())) if known else None


def _differences(rounds: Sequence[Sequence[Answer]], prompts: Sequence[Prompt]) -> list[Difference]:
    """The first difference that any round has with the expected answer, for each prompt that has one."""
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
