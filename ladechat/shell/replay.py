"""`ladechat replay`: a recorded session on the screen, or two of them side by side."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ladechat.checks import check_screen, in_terminal
from ladechat.files import why_unread
from ladechat.refusing import fail
from ladechat.session.recordings.reading import UnreadableRecording
from ladechat.session.recordings.recorder import latest_recording, recordings_folder
from ladechat.session.recordings.recording import IDLE_SECONDS, Recording


def replay(
    file: Annotated[Path | None, typer.Argument(help="A recording.", show_default=False)] = None,
    other: Annotated[
        Path | None, typer.Argument(help="Another one, to be shown beside it.", show_default=False)
    ] = None,
    idle_limit: Annotated[
        float | None,
        typer.Option(
            "--idle-limit",
            "-i",
            help="Shorten pauses to that many seconds.",
            min=0.0,
            show_default=f"{IDLE_SECONDS:g}",
        ),
    ] = None,
    real_time: Annotated[bool, typer.Option("--real-time", help="Leave pauses as long as they were.")] = False,
) -> None:
    """Show a recorded session, at its own pace or pass by pass; or the answers of two, side by side."""
    gc.disable()  # until the first frame is shown, as in a chat
    if other is not None and (real_time or idle_limit is not None):
        fail("--idle-limit and --real-time are for one recording: two run along one clock. Leave them out.")
    if file is None:
        fail(f"Which recording? Give its file, as in: ladechat replay talk.ladechat.jsonl. {_where_they_are()}")
    limit = None if real_time else IDLE_SECONDS if idle_limit is None else idle_limit
    open_one = Recording if other is None else Recording.read  # two are compared only once both are read completely
    read = [_opened(open_one, each, limit) for each in (file, other) if each is not None]
    if not in_terminal():
        fail("A replay needs a terminal; run it in one, without a pipe.")
    check_screen()
    from ladechat.app import run_race, run_replay

    if other is None:
        raise typer.Exit(run_replay(read[0]))
    from ladechat.session.race import Comparison, NothingToCompare

    try:
        comparison = Comparison(*read)
    except NothingToCompare as error:
        fail(str(error))
    raise typer.Exit(run_race(comparison))


def _where_they_are() -> str:
    """Return a sentence about the recordings without a given name."""
    folder = recordings_folder()
    if latest := latest_recording(folder):
        return f"Yours are in {folder}, the latest is {latest.name}."
    if why := why_unread(folder):
        return why
    return f"F7 in the app makes one, in {folder}, where there is none yet."


def _opened(open_one: Callable[[Path, float | None], Recording], file: Path, idle_limit: float | None) -> Recording:
    try:
        return open_one(file, idle_limit)
    except UnreadableRecording as error:
        fail(str(error))
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror or error}; give the file of a recording. {_where_they_are()}")
