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
    """What one contender did on one prompt behind the first step: tokens, on average, and the seconds for them, as
    `pair` has them from the rounds, and on average.
    """

    tokens: float
    seconds: float
    seconds_on_average: float


def pair(repeated: Sequence[Answer], together: int = 1) -> Pair:
    """What the answers of some rounds to one prompt come to.

    Their seconds are the median of those of each process's median round, for a machine pauses. The median of all rounds
    would be one of the slowest of a fast process, or one of the fastest of a slow one: another for each contender.

    Args:
        repeated: round by round.
        together: so many rounds, one behind the other, are of one process.
    """
    tokens = [len(answer.tokens) - answer.first_tokens for answer in repeated]
    seconds = [answer.rest_seconds for answer in repeated]
    of_processes = [statistics.median(seconds[at : at + together]) for at in range(0, len(seconds), together)]
    return Pair(statistics.mean(tokens), statistics.median(of_processes), statistics.mean(seconds))


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


def auto_to_best(
    auto: Sequence[Sequence[Answer]], fixed: Mapping[str, Sequence[Sequence[Answer]]], together: int = 1
) -> dict[str, Any]:
    """Auto's speed divided by that of the fastest fixed settings, on prompts of one kind.

    Of many that are measured with an error the fastest one is often one that was lucky: beside it auto looks slower
    than it is. So in each process it is compared with what was fastest in the others, where there are others. That may
    be slower than the fastest one truly is, so that auto looks faster than it is: the truth lies between the two.

    Args:
        auto: its answers, round by round, to each prompt.
        fixed: those of plain decoding and of fixed settings, by their names.
        together: so many rounds, one behind the other, are of one process.

    Returns:
        "best", what is fastest over all rounds; "to_best", auto's ratio to it; "by_process", the same in each process;
        "best_of_others", what else auto was compared with, round by round; and "auto_to_best", the ratio to those and
        the ends of its interval, which leaves their choice as it is.
    """
    rounds = range(len(auto[0]))
    processes = [[one for one in rounds if one // together == number] for number in range(-(-len(rounds) // together))]
    chosen = [_fastest(fixed, [one for one in rounds if one not in own] or own, together) for own in processes]
    best_of_others = [chosen[number // together] for number in rounds]
    pairs = [
        (pair(answers, together), pair([fixed[best][prompt][i] for i, best in enumerate(best_of_others)], together))
        for prompt, answers in enumerate(auto)
    ]
    best = _fastest(fixed, rounds, together)

    def ratio(own: Sequence[int]) -> float:
        return round(_seconds_in(fixed[best], own, together) / _seconds_in(auto, own, together), 3)

    return {
        "best": best,
        "to_best": ratio(rounds),
        "by_process": [ratio(own) for own in processes],
        "best_of_others": best_of_others,
        "auto_to_best": interval(pairs),
    }


def _fastest(fixed: Mapping[str, Sequence[Sequence[Answer]]], rounds: Sequence[int], together: int) -> str:
    return min(fixed, key=lambda name: _seconds_in(fixed[name], rounds, together))


def _seconds_in(answers: Sequence[Sequence[Answer]], rounds: Sequence[int], together: int) -> float:
    """For all prompts, in the rounds of some processes."""
    return _seconds(pair([of_prompt[number] for number in rounds], together) for of_prompt in answers)


def _seconds(pairs: Iterable[Pair]) -> float:
    return sum(one.seconds for one in pairs)
