"""What a command needs of how it was started: a terminal to draw on, open streams, words in place, and in UTF-8."""

import codecs
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Annotated

import typer

from ladechat import catalog
from ladechat.refusing import USAGE_ERROR, fail
from ladechat.terminal import STANDARD_INPUT, in_page, missing_streams, say

SECONDS_OF_SILENCE = 1.0
"""Of a program that waits for standard input, until it says so."""

DRIVER, COLORS = "TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM"
COLOR_SYSTEMS = ("auto", "standard", "256", "truecolor", "windows")
"""What rich has by these names."""
PLAIN_TERMINALS = ("dumb", "unknown")
"""Kinds of terminal, by TERM, on which no cursor can be moved."""


def text_of(given: str, name: str) -> str:
    """Return a text from the command line or a pipe, which is UTF-8 in whatever locale; else end the program.

    Where the locale has no such character (LC_ALL=C), Python puts half a surrogate pair in the place of each byte.

    Args:
        given: as Python has decoded it.
        name: what it is called in a sentence.
    """
    try:
        given.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(given).decode()
        except UnicodeError:
            fail(f"{name} is no text in UTF-8, and a model is asked in that; set LC_ALL=C.UTF-8, or type it anew.")
    return given


def _checked_text(parameter: typer.CallbackParam, given: str | None) -> str | None:
    """What typer calls with the value of an option that is a text."""
    return None if given is None else text_of(given, f"--{parameter.name}")


System = Annotated[
    str | None, typer.Option(callback=_checked_text, help="The system prompt: how the model should behave.")
]


def in_terminal() -> bool:
    """Is there a screen to draw on, and a keyboard?"""
    return in_page() or (sys.stdin.isatty() and sys.stdout.isatty())


def drawn_in_terminal() -> bool:
    """Is what Textual draws seen there?"""
    return in_page() or sys.stderr.isatty()


def check_screen() -> None:
    """Refuse a terminal on which the app would not be seen, in a sentence."""
    if (sentence := _why_unseen()) is not None:
        print(f"ladechat: {sentence}")  # where the user looks
        raise typer.Exit(USAGE_ERROR)


def _why_unseen() -> str | None:
    """Return why the app cannot be shown here. Textual draws on standard error, and takes keys for UTF-8."""
    if in_page():
        return None
    if not drawn_in_terminal():
        return "The screen is drawn on standard error, which goes elsewhere; start without redirecting it."
    if (kind := os.environ.get("TERM", "")) in PLAIN_TERMINALS:
        return f'This terminal (TERM={kind}) cannot show the app; take another, or use: ladechat ask "your question".'
    if (variable := _refused_variable()) is not None:
        return f"{variable}={os.environ[variable]} names nothing to draw with; unset {variable}."
    encoding = sys.stderr.encoding
    if codecs.lookup(encoding).name != "utf-8":
        return (
            f"The app is drawn in UTF-8, and this terminal's encoding is {encoding}; set LC_ALL=C.UTF-8 (and not "
            'PYTHONIOENCODING), or use: ladechat ask "your question".'
        )
    return None


def _refused_variable() -> str | None:
    """Return the variable of the environment whose value Textual would fail at, if one has such a value."""
    driver, colors = (os.environ.get(name) for name in (DRIVER, COLORS))
    if driver is not None and not _is_driver(driver):
        return DRIVER
    if colors is not None and colors not in COLOR_SYSTEMS:
        return COLORS
    return None


def _is_driver(name: str) -> bool:
    """Whether it names a driver of Textual's, as module:class."""
    from textual.driver import Driver

    module, _, symbol = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), symbol)
    except Exception:  # a module of the user's may raise anything
        return False
    return isinstance(found, type) and issubclass(found, Driver)


def check_streams(*needed: int) -> None:
    """Refuse to work where what a command reads from or writes to is closed."""
    for number in needed:
        if number in missing_streams():
            name, mark = ("input", "<&-") if number == STANDARD_INPUT else ("output", ">&-")
            fail(f"Standard {name} is closed, and this command needs it; start it without {mark}.")


def check_working_directory() -> None:
    """Refuse to start in a folder that was removed: no relative name can be found, and libraries end the process."""
    try:
        Path.cwd()
    except FileNotFoundError:
        fail("The working directory was removed; go to a folder that is there (cd), then start again.")


@contextmanager
def silence_explained() -> Iterator[None]:
    """Say on a terminal, after a second of waiting for standard input, that it is read, and how to end it."""
    if sys.stdin.isatty():
        sentence = "The question is read from here; Ctrl+D in an empty line ends it."
    else:
        sentence = "Standard input is read until it ends, as a part of the question; with </dev/null there is none."
    timer = Timer(SECONDS_OF_SILENCE, say, [sentence])
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def refuse_misplaced_options(context: typer.Context) -> None:
    """What stands before a command's name would be ignored without a word."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            option = max(parameter.opts, key=len)
            fail(f"{option} belongs behind the command: ladechat {context.invoked_subcommand} {option} ….")


MORE_WORDS = {"allow_extra_args": True}
"""How a command is declared that says itself what is wrong with words behind its question."""


def refuse_more_words(context: typer.Context) -> None:
    """Words behind the question are its rest, without quotation marks, or decoders of a race, without their option."""
    if not context.args:
        return
    command = context.info_name
    words = [name for word in context.args for name in word.split(",") if name]
    if command == "race" and words and all(word in catalog.DECODERS for word in words):
        fail(f'Decoders are named with an option: ladechat race "…" --decoders {",".join(words)}.')
    fail(f'A question of several words needs quotation marks: ladechat {command} "What is the n-gram pool?".')
