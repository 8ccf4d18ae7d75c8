"""`ladechat export`: checks the arguments, chooses the writer of a format, and writes its file atomically."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladechat.export.as_json import as_json
from ladechat.export.conversation import Talk, talk_of
from ladechat.export.html import html
from ladechat.export.markdown import markdown
from ladechat.files import PRIVATE, replace_file
from ladechat.formats import ENDINGS, FILMS, FORMATS, ONE_FILE, SIZE, ending
from ladechat.installing import command_for_extra
from ladechat.refusing import fail, in_short, joined_with
from ladechat.session.measuring import Measuring
from ladechat.session.recordings.reading import UnreadableRecording
from ladechat.session.recordings.recording import IDLE_SECONDS, Recording
from ladechat.terminal import Status, say
from ladechat.widgets.formatting import counted

if TYPE_CHECKING:  # they import the app, which takes a while
    from ladechat.export.film import Progress, Reel
    from ladechat.session.session import Session

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
    wanted = Wanted(cells, speed, idle if chosen in FILMS else None, step)
    with refusals_printed():
        notices = run(recording, out, chosen, wanted, force=force)
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


class ExportRefused(Exception):
    """Nothing was exported: the message says why and what to do, in a sentence."""


@contextlib.contextmanager
def refusals_printed() -> Iterator[None]:
    """Print why nothing is exported, and end the program."""
    try:
        yield
    except ExportRefused as error:
        fail(str(error))


@dataclass(frozen=True)
class Wanted:
    """The options of an export.

    Attributes:
        speed: 2 is twice as fast as the session.
        idle_limit: the seconds that pauses are shortened to; None: no limit.
        step: the step that a picture shows, counted from 1 through the whole recording; None: the last.
    """

    size: tuple[int, int]
    speed: float
    idle_limit: float | None
    step: int | None


def run(source: Path, out: Path, format_name: str, wanted: Wanted, *, force: bool) -> list[str]:
    """Export a recording; return what was wrong with it, in sentences.

    Raises:
        ExportRefused: nothing was exported.
    """
    try:
        recording = Recording.read(source, wanted.idle_limit)
    except UnreadableRecording as error:
        raise ExportRefused(str(error)) from error
    except OSError as error:
        raise ExportRefused(
            f"{source} cannot be read: {error.strerror or error}; give the file of a recording."
        ) from error
    with _unwritable(out):
        if out.exists() and out.samefile(source):
            raise ExportRefused(f"{out} is the recording itself; give the export another name.")
    write(out, lambda: _content(recording, format_name, wanted), force=force)
    return recording.notices


def _content(recording: Recording, format_name: str, wanted: Wanted) -> str | bytes:
    if format_name in FILMS:
        from ladechat.export.film import shoot

        return _film(format_name, wanted.speed, lambda progress: shoot(recording, wanted.size, progress))
    return _svg(recording, wanted) if format_name == "svg" else WRITERS_OF_TALKS[format_name](talk_of(recording))


def run_race(measuring: Measuring, out: Path, size: tuple[int, int] = SIZE, *, force: bool) -> None:
    """Export a race that has been measured.

    Raises:
        ExportRefused: nothing was exported.
    """
    from ladechat.export.film import photograph_race, shoot_race
    from ladechat.export.race_page import race_page

    if (format_name := ending(out)) == "html":
        write(out, lambda: race_page(measuring), force=force)
    elif format_name == "svg":
        write(out, lambda: photograph_race(measuring, size), force=force)
    else:
        write(out, lambda: _film(format_name, 1.0, lambda progress: shoot_race(measuring, size, progress)), force=force)


def run_lessons(session: "Session", first: int, out: Path, *, force: bool) -> None:
    """Play the lessons from the scene with this index on, in a session that was not started yet, and export them.

    Raises:
        ExportRefused: nothing was exported.
    """
    from ladechat.export.lesson_page import lesson_page
    from ladechat.export.lessons import EngineEnded, shoot_lessons

    def page() -> str:
        with _with_progress("playing the lessons") as progress:
            return lesson_page(shoot_lessons(session, first, progress))

    try:
        write(out, page, force=force)
    except EngineEnded as error:
        raise ExportRefused(f"The engine ended before the lessons did: {error}") from error


def write(out: Path, content: Callable[[], str | bytes], *, force: bool) -> None:
    """Write a file atomically.

    Raises:
        ExportRefused: nothing was written.
    """
    check_target(out, force=force)
    with _unwritable(out):
        made = content()
        check_target(out, force=force)  # drawing may have taken minutes
        replace_file(out, made.encode() if isinstance(made, str) else made, PRIVATE)


def check_target(out: Path, *, force: bool) -> None:
    """Check that the file may be written.

    Raises:
        ExportRefused: it may not be written.
    """
    with _unwritable(out):
        if os.path.lexists(out):
            if out.exists() and not out.is_file():
                raise ExportRefused(f"{out} is no file, so nothing is put in its place; give the name of a file.")
            if not force:
                raise ExportRefused(f"{out} exists already; give another name, or --force to overwrite it.")
        folder = Path(os.path.realpath(out)).parent if out.is_symlink() else out.parent
        if not folder.is_dir():
            raise ExportRefused(f"There is no folder {folder}; make it first, or give another name.")


@contextlib.contextmanager
def _unwritable(out: Path) -> Iterator[None]:
    """Raise `ExportRefused` for an error of the system, such as a missing permission or a full disk."""
    try:
        yield
    except OSError as error:
        raise ExportRefused(f"{out} cannot be written: {error.strerror or error}; give another name.") from error


def _film(format_name: str, speed: float, shoot: "Callable[[Progress], Reel]") -> str | bytes:
    """Draw a film, and return it as a file of the format."""
    if format_name == "gif":
        check_painting()
    with _with_progress("drawing") as progress:
        reel = shoot(progress)
    if format_name != "gif":
        from ladechat.export.cast import cast

        return cast(reel, speed=speed, version=2 if format_name == "cast2" else 3)
    from ladechat.export.gif import gif

    with _with_progress("painting") as progress:
        return gif(reel.frames, speed, progress)


def check_painting() -> None:
    """Check that a GIF can be painted on this machine, before a film or a race takes minutes.

    Raises:
        ExportRefused: Pillow is missing, or a font.
    """
    try:
        from ladechat.export.glyphs import Glyphs, NoFont
    except ImportError as error:
        raise ExportRefused(f"A GIF needs Pillow, which is not installed: {command_for_extra('gif')}") from error
    try:
        Glyphs()
    except NoFont as error:
        raise ExportRefused(
            "A GIF is painted in a monospaced font, and none was found here; install DejaVu Sans Mono "
            "(Debian and Ubuntu: fonts-dejavu-core)."
        ) from error


@contextlib.contextmanager
def _with_progress(doing: str) -> Iterator["Progress"]:
    """Yield a function that shows the progress of `doing` on a terminal."""
    status = Status()
    try:
        yield lambda done: status.show(f"{doing} {done:.0%}")
    finally:
        status.clear()


def _svg(recording: Recording, wanted: Wanted) -> str:
    from ladechat.export.film import photograph

    steps = recording.steps_before[-1]
    if wanted.step is not None and wanted.step > steps:
        raise ExportRefused(
            f"The recording has {counted(steps, 'pass')}, so there is no pass {wanted.step:,}; give --step a lower one."
        )
    return photograph(recording, wanted.size, wanted.step)


WRITERS_OF_TALKS: Mapping[str, Callable[[Talk], str]] = {"html": html, "md": markdown, "json": as_json}
"""Writers that need questions and answers, by the name of their format."""
