"""How a command says in one sentence what is wrong, and ends."""

from collections.abc import Sequence
from typing import NoReturn

import typer

from ladechat.protocol import MOST
from ladechat.terminal import say

USAGE_ERROR = 2
MOST_DIGITS = 20


def in_short(number: int) -> str:
    """A number for a sentence: of one that nobody can read, how it begins."""
    digits = str(number)
    return digits if len(digits) <= MOST_DIGITS else f"{digits[:MOST_DIGITS]}…"


def fail(sentence: str) -> NoReturn:
    """Say what is wrong and what to do, and end the program."""
    say(sentence)
    raise typer.Exit(USAGE_ERROR)


def joined_with(word: str, names: Sequence[str]) -> str:
    """Names as they stand in a sentence: with commas, and a word before the last."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def check_count(option: str, value: int, least: int) -> None:
    """Refuse what is below the least, and numbers that no reader of the protocol takes."""
    if value < least:
        fail(f"{option} has to be a whole number from {least} on, not {in_short(value)}.")
    if value > MOST:
        fail(f"{option} {in_short(value)} is more than any model has use for; give a smaller number.")
