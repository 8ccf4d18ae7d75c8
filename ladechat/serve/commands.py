"""The command line of `ladechat serve`: it checks the arguments, opens the port, and starts the server."""

import importlib.util
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from ladechat.checks import System, is_given
from ladechat.engine_options import EngineOptions
from ladechat.installing import command_for_extra
from ladechat.options import check_length, with_engine_options
from ladechat.refusing import fail, in_short
from ladechat.serve.access import Access, is_loopback
from ladechat.terminal import say

PACKAGES = ("aiohttp", "textual_serve")
"""The packages of the extra `serve`."""
HOST, PORT, MOST_PORT = "127.0.0.1", 8000, 65_535
TABS, MOST_TABS = 4, 64
OF_THE_SERVER = {"recording", "host", "port", "tabs"}
"""The options that also apply to a recording."""


@with_engine_options
def serve(
    context: typer.Context,
    engine: EngineOptions,
    recording: Annotated[
        Path | None, typer.Argument(help="A recording to show; without one, a chat.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 lets other machines in.")] = HOST,
    port: Annotated[int, typer.Option(help="The port to listen at; 0 takes one that is free.")] = PORT,
    tabs: Annotated[int, typer.Option(help="How many tabs at once; each has an engine of its own.")] = TABS,
    max_new_tokens: Annotated[int | None, typer.Option(help="The longest answer, in tokens.")] = None,
    system: System = None,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep no conversation and no question.")] = False,
) -> None:
    """Show the app in a browser: a chat, or a recording (docs/serve.md)."""
    if any(importlib.util.find_spec(package) is None for package in PACKAGES):
        fail(f"serve needs packages that are not installed: {command_for_extra('serve')}")
    _check_within("--port", port, 0, MOST_PORT)
    _check_within("--tabs", tabs, 1, MOST_TABS)
    check_length(max_new_tokens)
    app = [sys.executable, "-P", "-m", "ladechat"]  # -P: as for an engine
    if recording is not None:
        _check_recording(recording, context)
        app += ["replay", "--", str(recording)]
    else:
        if engine.engine_command is None and engine.server is None:
            _check_model(engine.model)
        app += engine.arguments()
        app += [f"--max-new-tokens={max_new_tokens}"] if max_new_tokens is not None else []
        app += [f"--system={system}"] if system is not None else []
        app += ["--no-save"] if no_save else []
    loads = recording is None and engine.server is None
    raise typer.Exit(_run(app, Access(host), _listen(host, port), tabs, loads=loads))


def _run(app: list[str], access: Access, listening: socket.socket, tabs: int, *, loads: bool) -> int:
    import asyncio

    from ladechat.serve.server import Served, run

    def started() -> None:
        print(address(access, listening), flush=True)
        for sentence in explained(access, listening, tabs, loads=loads):
            say(sentence)

    return asyncio.run(run(Served(app, access, tabs), listening, started))


def address(access: Access, listening: socket.socket) -> str:
    """Return the address to open in a browser, with the machine's name if the server listens on all interfaces."""
    host, port = access.host, listening.getsockname()[1]
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/{access.token}/"


def explained(access: Access, listening: socket.socket, tabs: int, *, loads: bool = True) -> list[str]:
    """Return what the user should know about the address, and about the tabs, each of which `loads` a model or not."""
    port = listening.getsockname()[1]
    most = "one at a time" if tabs == 1 else f"{tabs} at a time"
    open_it = "Open this address in a browser. Keep it to yourself: whoever has it uses ladechat as you do."
    engine = " and an engine, which loads the model once more" if loads else ""
    each_tab = f"Each tab starts an app{engine}; {most}. Ctrl+C ends them all."
    if is_loopback(access.host):
        return [open_it, each_tab]
    others = f"--host {access.host} lets other machines in, and all that is typed and answered travels unencrypted."
    safer = f"Safer: leave it out, and on the other machine run ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}."
    return [open_it, each_tab, f"{others} {safer}"]


def _listen(host: str, port: int) -> socket.socket:
    """Return the socket, already open, so that no address is printed that cannot be used."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(where[:2], family=family)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fail(f"Port {port} of {host!r} cannot be listened at: {reason}; give another with --port or --host.")


def _check_within(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        fail(f"{option} has to be from {least} to {most:,}, not {in_short(value)}.")


def _check_recording(recording: Path, context: typer.Context) -> None:
    """Refuse a recording that cannot be played, and options that would be ignored silently."""
    for parameter in context.command.params:
        if parameter.name not in OF_THE_SERVER and is_given(str(parameter.name), context):
            fail(f"{max(parameter.opts, key=len)} is for a chat, and says nothing about a recording; leave it out.")
    from ladechat.session.recordings.reading import UnreadableRecording
    from ladechat.session.recordings.recording import Recording

    try:
        Recording.read(recording)
    except UnreadableRecording as error:
        fail(str(error))
    except OSError as error:
        fail(f"{recording} cannot be read: {error.strerror or error}.")


def _check_model(model: str) -> None:
    """Refuse a folder or file that does not exist now, rather than in each tab. Models on a hub are checked there."""
    from ladechat.model.checkpoint.fetch import local_files
    from ladechat.model.checkpoint.files import LoadError

    try:
        local_files(model)
    except LoadError as error:
        fail(f"{error} {error.hint}")
