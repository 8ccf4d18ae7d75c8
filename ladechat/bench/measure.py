"""The rounds: all methods answer all prompts, in turns."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from ladechat.bench.methods import Method, TimedAnswer
from ladechat.bench.prompts import BenchPrompt
from ladechat.decoder.step import Limits
from ladechat.garbage import collect_rarely

Round = dict[str, list[TimedAnswer]]
"""The answers of each method, by name, to each prompt."""

Item = TypeVar("Item")


def measure(
    methods: Sequence[Method],
    prompts: Sequence[BenchPrompt],
    limits: Limits,
    rounds: int,
    tick: Callable[[], None],
) -> list[Round]:
    """Measure `rounds` rounds over all prompts, after a warm-up over the first of each kind, which does not count.

    Garbage is collected as rarely as in an engine. `tick` is called after every one of the `answers_in_all` answers.
    """
    collect_rarely()
    _round(methods, _first_of_each_kind(prompts), limits, 0, tick)
    return [_round(methods, prompts, limits, number, tick) for number in range(rounds)]


def answers_in_all(methods: Sequence[Method], prompts: Sequence[BenchPrompt], rounds: int) -> int:
    """Return the number of answers that `measure` takes."""
    return len(methods) * (len(_first_of_each_kind(prompts)) + rounds * len(prompts))


def _round(
    methods: Sequence[Method], prompts: Sequence[BenchPrompt], limits: Limits, number: int, tick: Callable[[], None]
) -> Round:
    """Have all methods answer one prompt before any gets the next: a machine that slows down slows all of them.

    The first method changes from round to round, and their order from prompt to prompt, because each leaves its data in
    the processor's caches.
    """
    answers: Round = {method.name: [] for method in methods}
    for index, prompt in enumerate(prompts):
        for method in rotated(random.Random(index).sample(methods, len(methods)), number):
            answers[method.name].append(method.answer(prompt.token_ids, limits))
            tick()
    return answers


def _first_of_each_kind(prompts: Sequence[BenchPrompt]) -> list[BenchPrompt]:
    return list({prompt.kind: prompt for prompt in reversed(prompts)}.values())


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """Return the same items in the same cyclic order, starting `by` items later."""
    start = by % len(items)
    return [*items[start:], *items[:start]]
