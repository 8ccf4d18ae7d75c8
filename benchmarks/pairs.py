"""Ratios of two speeds over the same prompts, with intervals; and auto beside the best fixed settings.

All write the same text, so that one is as many times as fast as another as the other takes its time, from the end of
the first step on. Tokens that came with that step have come: a decoder whose guesses were right there has fewer left.
"""

import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ladechat.bench.contenders import Answer

DRAWS = 2000
"""So often prompts are drawn anew for an interval."""


@dataclass(frozen=True)
class Pair:
    """What one contender did on one prompt behind the first step: tokens, on average, and the seconds for them, as the
    median of the rounds and on average.
    """

    tokens: float
    seconds: float
    seconds_on_average: float


def pair(repeated: Sequence[Answer]) -> Pair:
    """What the answers of some rounds to one prompt come to: their seconds are the median, for a machine pauses."""
    tokens = [len(answer.tokens) - answer.first_tokens for answer in repeated]
    seconds = [answer.rest_seconds for answer in repeated]
    return Pair(statistics.mean(tokens), statistics.median(seconds), statistics.mean(seconds))


def rate(pairs: Sequence[Pair]) -> float:
    """Tokens per second."""
    return sum(one.tokens for one in pairs) / sum(one.seconds for one in pairs)


def rate_on_average(pairs: Sequence[Pair]) -> float:
    """Tokens per second, pauses of the machine included."""
    return sum(one.tokens for one in pairs) / sum(one.seconds_on_average for one in pairs)


def interval(pairs: Sequence[tuple[Pair, Pair]]) -> list[float]:
    """How many times as fast the first of each two was, and what holds 95 % of that where prompts are drawn anew."""
    dice = random.Random(0)

    def ratio(chosen: Sequence[tuple[Pair, Pair]]) -> float:
        return _seconds(other for _, other in chosen) / _seconds(mine for mine, _ in chosen)

    drawn = sorted(ratio(dice.choices(pairs, k=len(pairs))) for _ in range(DRAWS))
    return [round(value, 3) for value in (ratio(pairs), drawn[DRAWS // 40], drawn[-DRAWS // 40])]


def auto_to_best(auto: Sequence[Sequence[Answer]], fixed: Mapping[str, Sequence[Sequence[Answer]]]) -> dict[str, Any]:
    """Auto's speed divided by that of the fastest fixed settings, on prompts of one kind.

    Of many that are measured with an error the fastest one is often one that was lucky: beside it auto looks slower
    than it is. So in each round it is compared with what was fastest in the others, where there are others. That may
    be slower than the fastest one truly is, so that auto looks faster than it is: the truth lies between the two.

    Args:
        auto: its answers, round by round, to each prompt.
        fixed: those of plain decoding and of fixed settings, by their names.

    Returns:
        "best", what is fastest over all rounds; "by_round", auto's ratio to it in each round, whose times are of the
        same minutes; "to_best", the median of these; "best_of_others", what else auto was compared with, round by
        round; and "auto_to_best", the ratio to those and the ends of its interval, which leaves their choice as it is.
    """
    rounds = range(len(auto[0]))
    best_of_others = [_fastest(fixed, [one for one in rounds if one != own] or [own]) for own in rounds]
    pairs = [
        (pair(answers), pair([fixed[best][prompt][own] for own, best in enumerate(best_of_others)]))
        for prompt, answers in enumerate(auto)
    ]
    best = _fastest(fixed, rounds)

    by_round = [_seconds_in(fixed[best], [own]) / _seconds_in(auto, [own]) for own in rounds]
    return {
        "best": best,
        "to_best": round(statistics.median(by_round), 3),
        "by_round": [round(ratio, 3) for ratio in by_round],
        "best_of_others": best_of_others,
        "auto_to_best": interval(pairs),
    }


def _fastest(fixed: Mapping[str, Sequence[Sequence[Answer]]], rounds: Sequence[int]) -> str:
    return min(fixed, key=lambda name: _seconds_in(fixed[name], rounds))


def _seconds_in(answers: Sequence[Sequence[Answer]], rounds: Sequence[int]) -> float:
    """For all prompts, in some rounds."""
    return _seconds(pair([of_prompt[number] for number in rounds]) for of_prompt in answers)


def _seconds(pairs: Iterable[Pair]) -> float:
    return sum(one.seconds for one in pairs)
