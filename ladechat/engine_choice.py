"""Whether an engine is started here or by the user's command, and what such a command is sent of the settings."""

from collections.abc import Collection
from typing import Annotated

import typer

from ladechat.engine_command import CommandRefused, EngineCommand, split
from ladechat.refusing import fail

OPTION = "--engine"
EngineOfCommand = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="COMMAND",
        help="The engine: any command that speaks the protocol (docs/protocol.md) on its standard input and output, "
        "as: ssh gpu-box ladechat engine --model NAME.",
        show_default="an engine on this machine",
    ),
]


def chosen_command(text: str | None, preferred: str | None, options: Collection[str]) -> EngineCommand | None:
    """Return the command that is the engine; None for an engine of this machine. End the program if it cannot be run.

    Args:
        text: the value of --engine, if given.
        preferred: that of the settings file; used unless the command line selects another engine.
        options: the options of an engine of this machine on the command line, as --model.
    """
    if text is not None and options:
        fail(
            f"{next(iter(options))} is for an engine that is started here, and {OPTION} names a command with its own "
            "options; write it into the command, or leave one of them out."
        )
    text, source = (text, OPTION) if text is not None else (None if options else preferred, "engine in settings.toml")
    if text is None:
        return None
    try:
        return EngineCommand(text, split(text))
    except CommandRefused as refused:
        fail(f"The command of {source} {refused}")
