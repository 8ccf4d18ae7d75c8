"""Errors of a command: one sentence, then the end of the program."""

from collections.abc import Sequence
from typing import NoReturn

import typer

from ladechat.protocol import MOST
from ladechat.terminal import say

USAGE_ERROR = 2
MOST_DIGITS = 20


def in_short(number: int) -> str:
    """Return a number for a sentence; of a very long one, only the first digits."""
    digits = str(number)
    return digits if len(digits) <= MOST_DIGITS else f"{digits[:MOST_DIGITS]}…"


def fail(sentence: str) -> NoReturn:
    """Print what is wrong and what to do, and end the program."""
    say(sentence)
    raise typer.Exit(USAGE_ERROR)


def joined_with(word: str, names: Sequence[str]) -> str:
    """Return names joined for a sentence: with commas, and a word before the last."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def check_count(option: str, value: int, least: int) -> None:
    """Refuse numbers below the least, and those that the protocol cannot represent."""
    if value < least:
        fail(f"{option} has to be a whole number from {least} on, not {in_short(value)}.")
    if value > MOST:
        fail(f"{option} {in_short(value)} is more than any model has use for; give a smaller number.")
