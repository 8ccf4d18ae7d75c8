"""The rounds: all methods on all prompts, in turns."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from ladechat.bench.methods import Answer, Method
from ladechat.bench.prompts import Prompt
from ladechat.decoder.step import Limits
from ladechat.garbage import collect_rarely

Round = dict[str, list[Answer]]
"""What each method, by name, answered to each prompt."""

Item = TypeVar("Item")


def measure(
    methods: Sequence[Method],
    prompts: Sequence[Prompt],
    limits: Limits,
    rounds: int,
    tick: Callable[[], None],
) -> list[Round]:
    """Measure `rounds` rounds over all prompts, after a warm-up over the first of each kind, which does not count.

    Garbage is collected as rarely as in an engine. `tick` is called after every answer; there are `answers_in_all`.
    """
    collect_rarely()
    _round(methods, _first_of_each_kind(prompts), limits, 0, tick)
    return [_round(methods, prompts, limits, number, tick) for number in range(rounds)]


def answers_in_all(methods: Sequence[Method], prompts: Sequence[Prompt], rounds: int) -> int:
    """How many answers `measure` takes."""
    return len(methods) * (len(_first_of_each_kind(prompts)) + rounds * len(prompts))


def _round(
    methods: Sequence[Method], prompts: Sequence[Prompt], limits: Limits, number: int, tick: Callable[[], None]
) -> Round:
    """All methods answer one prompt before any gets the next: a machine that slows down slows all of them.

    Which begins changes from round to round, and which follows which from prompt to prompt: the processor's caches are
    as the method before has left them.
    """
    answers: Round = {method.name: [] for method in methods}
    for index, prompt in enumerate(prompts):
        for method in rotated(random.Random(index).sample(methods, len(methods)), number):
            answers[method.name].append(method.answer(prompt.token_ids, limits))
            tick()
    return answers


def _first_of_each_kind(prompts: Sequence[Prompt]) -> list[Prompt]:
    return list({prompt.kind: prompt for prompt in reversed(prompts)}.values())


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """The same items in the same circle, beginning with another one."""
    start = by % len(items)
    return [*items[start:], *items[:start]]
