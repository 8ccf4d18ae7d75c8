"""Checks of how a command was started: a terminal to draw on, open streams, options in place, text in UTF-8."""

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
"""The seconds that a program waits for standard input before it says so."""

DRIVER, COLORS = "TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM"
COLOR_SYSTEMS = ("auto", "standard", "256", "truecolor", "windows")
"""The names of rich's color systems."""
PLAIN_TERMINALS = ("dumb", "unknown")
"""The terminals, by TERM, whose cursor cannot be moved."""


def text_of(given: str, name: str) -> str:
    """Return a text from the command line or a pipe, decoded as UTF-8 in any locale; if that fails, end the program
    with a sentence that calls it `name`.

    In a locale without the character (LC_ALL=C), Python decodes each of its bytes to half a surrogate pair.
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
    """Check the value of a text option, as typer's callback."""
    return None if given is None else text_of(given, f"--{parameter.name}")


System = Annotated[
    str | None, typer.Option(callback=_checked_text, help="The system prompt: how the model should behave.")
]


def is_given(name: str, context: typer.Context) -> bool:
    """Return whether this option was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def in_terminal() -> bool:
    """Return whether there is a screen to draw on, and a keyboard."""
    return in_page() or (sys.stdin.isatty() and sys.stdout.isatty())


def drawn_in_terminal() -> bool:
    """Return whether what Textual draws is seen on a terminal or in a browser tab."""
    return in_page() or sys.stderr.isatty()


def check_screen() -> None:
    """Refuse a terminal on which the app would not be seen, with a message."""
    if (sentence := _why_unseen()) is not None:
        print(f"ladechat: {sentence}")  # standard output, where the user looks
        raise typer.Exit(USAGE_ERROR)


def _why_unseen() -> str | None:
    """Return why the app cannot be shown; None if it can. Textual draws on standard error, and reads keys as UTF-8."""
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
    """Return the environment variable whose value would make Textual fail; None if there is none."""
    driver, colors = (os.environ.get(name) for name in (DRIVER, COLORS))
    if driver is not None and not _is_driver(driver):
        return DRIVER
    if colors is not None and colors not in COLOR_SYSTEMS:
        return COLORS
    return None


def _is_driver(name: str) -> bool:
    """Return whether a name, as module:class, is that of a Textual driver."""
    from textual.driver import Driver

    module, _, symbol = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), symbol)
    except Exception:  # the user's own module may raise anything
        return False
    return isinstance(found, type) and issubclass(found, Driver)


def check_streams(*needed: int) -> None:
    """End the program if a stream that a command reads or writes is closed."""
    for number in needed:
        if number in missing_streams():
            name, mark = ("input", "<&-") if number == STANDARD_INPUT else ("output", ">&-")
            fail(f"Standard {name} is closed, and this command needs it; start it without {mark}.")


def check_working_directory() -> None:
    """End the program if its folder was removed: relative names cannot be resolved, and libraries exit the process."""
    try:
        Path.cwd()
    except FileNotFoundError:
        fail("The working directory was removed; go to a folder that is there (cd), then start again.")


@contextmanager
def silence_explained() -> Iterator[None]:
    """Say on a terminal, after a second of waiting for standard input, that it is being read, and how to end it."""
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
    """Refuse options before a command's name, which would be ignored silently."""
    for parameter in context.command.params:
        if is_given(str(parameter.name), context):
            option = max(parameter.opts, key=len)
            fail(f"{option} belongs behind the command: ladechat {context.invoked_subcommand} {option} ….")


MORE_WORDS = {"allow_extra_args": True}
"""The settings of a command that itself reports extra arguments after its question."""


def refuse_more_words(context: typer.Context) -> None:
    """Refuse arguments after the question: words of it without quotation marks, or decoders without their option."""
    if not context.args:
        return
    command = context.info_name
    words = [name for word in context.args for name in word.split(",") if name]
    if command == "race" and words and all(word in catalog.DECODERS for word in words):
        fail(f'Decoders are named with an option: ladechat race "…" --decoders {",".join(words)}.')
    fail(f'A question of several words needs quotation marks: ladechat {command} "What is the n-gram pool?".')
