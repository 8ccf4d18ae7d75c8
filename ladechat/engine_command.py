"""An engine that a command of the user's starts, as on another machine: `--engine "ssh gpu-box ladechat engine"`."""

import shlex
import shutil
from dataclasses import dataclass

from ladechat.protocol import Configure

EXAMPLE = 'as in --engine "ssh gpu-box ladechat engine --model demo"'


UNCHANGED = Configure()
"""Leaves all settings as they are."""


class CommandRefused(Exception):
    """The reason why a text is no command that can be run, as the end of a sentence, with what to do."""


@dataclass(frozen=True)
class EngineCommand:
    """A command that speaks the protocol on its standard input and output.

    Attributes:
        text: the command as the user has written it.
        words: its program, and the arguments.
        change: the settings that it is sent; all others are as the command itself chooses.
    """

    text: str
    words: tuple[str, ...]
    change: Configure = UNCHANGED


def split(text: str) -> tuple[str, ...]:
    """Return the words of a command, as a shell splits it. Nothing else of a shell is done: `sh -c '…'` has one.

    Raises:
        CommandRefused: it is empty or cannot be split, or there is no such program.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise CommandRefused(f"cannot be split into words ({error}); close the quotation, {EXAMPLE}.") from None
    if not words or not words[0]:
        raise CommandRefused(f"is empty; give a command, {EXAMPLE}.")
    if any("\0" in word for word in words):
        raise CommandRefused(f"has a zero byte in it, which no command can have; leave it out, {EXAMPLE}.")
    if shutil.which(words[0]) is None:
        raise CommandRefused(
            f"begins with {words[0]!r}, and there is no such program here; install it, or write its whole path."
        )
    return words
