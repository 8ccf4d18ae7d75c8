"""The rounds: all contenders on all prompts, in turns."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from ladechat.bench.contenders import Answer, Contender
from ladechat.bench.prompts import Prompt
from ladechat.decoder.step import Limits
from ladechat.garbage import collect_seldom

Round = dict[str, list[Answer]]
"""What each contender, by name, answered to each prompt."""

Item = TypeVar("Item")


def measure(
    contenders: Sequence[Contender],
    prompts: Sequence[Prompt],
    limits: Limits,
    rounds: int,
    tick: Callable[[], None],
) -> list[Round]:
    """Measure so many rounds over all prompts, after a warm-up over the first of each kind, which does not count.

    Garbage is left as long as an engine leaves it.

    `tick` is called after every answer, of which there are `answers_in_all`.
    """
    collect_seldom()
    _round(contenders, _first_of_each_kind(prompts), limits, 0, tick)
    return [_round(contenders, prompts, limits, number, tick) for number in range(rounds)]


def answers_in_all(contenders: Sequence[Contender], prompts: Sequence[Prompt], rounds: int) -> int:
    """How many answers `measure` takes."""
    return len(contenders) * (len(_first_of_each_kind(prompts)) + rounds * len(prompts))


def _round(
    contenders: Sequence[Contender], prompts: Sequence[Prompt], limits: Limits, number: int, tick: Callable[[], None]
) -> Round:
    """All contenders answer one prompt before any gets the next: a machine that slows down slows all of them.

    Who begins changes from round to round, and who follows whom from prompt to prompt: what a decoder leaves behind, in
    the processor's caches, must not always meet the same one.
    """
    answers: Round = {contender.name: [] for contender in contenders}
    for index, prompt in enumerate(prompts):
        for contender in rotated(random.Random(index).sample(contenders, len(contenders)), number):
            answers[contender.name].append(contender.answer(prompt.token_ids, limits))
            tick()
    return answers


def _first_of_each_kind(prompts: Sequence[Prompt]) -> list[Prompt]:
    return list({prompt.kind: prompt for prompt in reversed(prompts)}.values())


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """The same items in the same circle, beginning with another one."""
    start = by % len(items)
    return [*items[start:], *items[:start]]
