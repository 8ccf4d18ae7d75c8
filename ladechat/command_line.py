"""Additions to typer's parsing and listing of the command line."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from ladechat.refusing import fail
from ladechat.terminal import shown

RECORD = "--record"


class CommandList(TyperGroup):
    """A list of commands with the whole first sentence of each: click truncates it to the width of the terminal."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(limit=sys.maxsize)) for name, one in commands if not one.hidden]
            )


class Commands(CommandList):
    """The commands, with an option whose value is optional, which typer does not support."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        following = [*args, "-"][1:]
        given = [
            f"{RECORD}=" if arg == RECORD and after.startswith("-") else arg
            for arg, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, given)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if any(map(str.isspace, args[0])) and not ctx.resilient_parsing:
            fail('A question comes behind a command: ladechat ask "What is the n-gram pool?".')
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _refusals_made_visible():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _refusals_made_visible():
            return super().invoke(ctx)


def command_group(help: str) -> typer.Typer:
    """Return a command that has others, which it lists where none is named."""
    look: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
    return typer.Typer(cls=CommandList, no_args_is_help=True, help=help, **look)


@contextlib.contextmanager
def _refusals_made_visible() -> Iterator[None]:
    """Make control characters visible in errors of typer, which repeat the given arguments as they are."""
    try:
        yield
    except Exception as error:  # typer and click raise many types, all with a message
        if isinstance(message := getattr(error, "message", None), str):
            error.message = shown(message)  # type: ignore[attr-defined]  # looked at just now
        raise
