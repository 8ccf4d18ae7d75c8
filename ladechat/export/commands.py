"""The command line of `ladechat export`: it checks the arguments. `ladechat.export.command` does the work."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ladechat.formats import ENDINGS, FILMS, FORMATS, ONE_FILE, SIZE, ending
from ladechat.refusing import fail, in_short, joined_with
from ladechat.session.recordings.replay import IDLE_SECONDS
from ladechat.terminal import say

LEAST_SIZE, MOST_SIZE = (40, 10), (400, 200)
SPEED_RANGE = (0.1, 100.0)
MOST_IDLE_SECONDS = 86_400.0
ONLY_FOR = {"--size": (*FILMS, "svg"), "--speed": FILMS, "--idle": FILMS, "--step": ("svg",)}
"""The formats that an option applies to."""


def export(
    ctx: typer.Context,
    recording: Annotated[Path, typer.Argument(help="A recording.", show_default=False)],
    out: Annotated[
        Path,
        typer.Argument(help=f"The file, which ends {ENDINGS}.", metavar="OUT", show_default=False),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(FORMATS), help="By default as OUT ends; cast2 is asciicast v2, for older players."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help="Of the screen, for .cast, .gif and .svg.", show_default="120x36", metavar="COLUMNSxROWS"),
    ] = None,
    speed: Annotated[float | None, typer.Option(help="Of a film: 2 is twice as fast.", show_default="1")] = None,
    idle: Annotated[
        float | None,
        typer.Option(help="Seconds that pauses of a film are shortened to.", show_default=f"{IDLE_SECONDS:g}"),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="The pass that an .svg shows, from 1.", show_default="the last screen")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
) -> None:
    """Make a file of a recorded session for people without ladechat: film, page, picture, text or data."""
    if ctx.args:
        fail(ONE_FILE)
    chosen = _format(out, format)
    given = {"--size": size, "--speed": speed, "--idle": idle, "--step": step}
    _check_belongs(chosen, {option for option, value in given.items() if value is not None})
    cells = size_of(size)
    speed = _within("--speed", 1.0 if speed is None else speed, SPEED_RANGE)
    idle = _within("--idle", IDLE_SECONDS if idle is None else idle, (0.0, MOST_IDLE_SECONDS))
    if step is not None and step < 1:
        fail(f"--step counts passes from 1, so there is no pass {in_short(step)}.")
    from ladechat.export.command import ExportRefused, Wanted, run

    try:
        wanted = Wanted(cells, speed, idle if chosen in FILMS else None, step)
        notices = run(recording, out, chosen, wanted, force=force)
    except ExportRefused as error:
        fail(str(error))
    for notice in notices:
        say(notice)


def _format(out: Path, named: str | None) -> str:
    if named is not None and named not in FORMATS:
        fail(f"There is no format {named!r}; use --format {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    if named is None and ending(out) not in FORMATS:
        fail(
            f"The name {out} does not say which format to write; end it {ENDINGS}, or give --format "
            f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}."
        )
    return named or ending(out)


def _check_belongs(chosen: str, given: set[str]) -> None:
    """Refuse an option that would change nothing: it is most likely a mistake."""
    for option, formats in ONLY_FOR.items():
        if option in given and chosen not in formats:
            fail(f"{option} is for {joined_with('and', formats)}, and changes nothing in {chosen}; leave it out.")


def size_of(text: str | None) -> tuple[int, int]:
    """Return columns and rows from the argument of --size."""
    if text is None:
        return SIZE
    match = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text, re.ASCII)
    columns, rows = (int(match[1]), int(match[2])) if match else (0, 0)
    least, most = LEAST_SIZE, MOST_SIZE
    if not (least[0] <= columns <= most[0] and least[1] <= rows <= most[1]):
        fail(
            f"--size is columns and rows, from {least[0]}x{least[1]} to {most[0]}x{most[1]}, as in --size "
            f"{SIZE[0]}x{SIZE[1]}, not {text!r}."
        )
    return columns, rows


def _within(option: str, value: float, bounds: tuple[float, float]) -> float:
    if not bounds[0] <= value <= bounds[1]:
        fail(f"{option} has to be from {bounds[0]:g} to {bounds[1]:,.0f}, not {value:g}.")
    return value
