"""`ladechat export`: which file is made of a recording, and that it is written whole, over nothing, or not at all."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ladechat.ask import Status
from ladechat.export.as_json import as_json
from ladechat.export.conversation import talk_of
from ladechat.export.html import html
from ladechat.export.markdown import markdown
from ladechat.files import replace_file
from ladechat.session.reading import UnreadableRecording
from ladechat.session.replay import Recording

OWNER_ONLY = 0o600
"""As the recording: what was said is for others when its user hands it on."""


class Refused(Exception):
    """Why nothing was exported, in a sentence that says what to do."""


@dataclass(frozen=True)
class Wanted:
    """What is to be exported, and how.

    Attributes:
        size: columns and rows of the screen.
        speed: 2 is twice as fast as the session.
        idle_limit: seconds that pauses are shortened to; None leaves them as they were.
        step: of a picture, from 1 through the whole recording; None is the last.
    """

    size: tuple[int, int]
    speed: float
    idle_limit: float | None
    step: int | None


Writer = Callable[[Recording, Wanted], str | bytes]
"""Makes the content of a file."""


def run(source: Path, out: Path, format_name: str, wanted: Wanted, *, force: bool) -> list[str]:
    """Export a recording; what was wrong with it, in sentences.

    Raises:
        Refused: nothing was exported.
    """
    try:
        recording = Recording.read(source, wanted.idle_limit)
    except UnreadableRecording as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(f"{source} cannot be read: {error.strerror or error}.") from error
    try:
        _check_target(source, out, force)
        content = WRITERS[format_name](recording, wanted)
        _check_target(source, out, force)  # drawing may have taken minutes
        replace_file(out, content.encode() if isinstance(content, str) else content, OWNER_ONLY)
    except OSError as error:
        raise Refused(f"{out} cannot be written: {error.strerror or error}; give another name.") from error
    return recording.notices


def _check_target(source: Path, out: Path, force: bool) -> None:
    """Look whether the file may be written."""
    if out.exists():
        if out.samefile(source):
            raise Refused(f"{out} is the recording itself; give the export another name.")
        if not out.is_file():
            raise Refused(f"{out} is no file, so nothing is put in its place; give the name of a file.")
        if not force:
            raise Refused(f"{out} exists already; give another name, or --force to overwrite it.")
    elif not out.parent.is_dir():
        raise Refused(f"There is no folder {out.parent}; make it first, or give another name.")


def _cast(version: int) -> Writer:
    def write_cast(recording: Recording, wanted: Wanted) -> str:
        from ladechat.export.cast import cast
        from ladechat.export.film import Size, shoot

        with _told("drawing") as progress:
            frames = shoot(recording, Size(*wanted.size), progress)
        return cast(recording, frames, Size(*wanted.size), speed=wanted.speed, version=version)

    return write_cast


def _gif(recording: Recording, wanted: Wanted) -> bytes:
    try:
        from ladechat.export.gif import gif
        from ladechat.export.glyphs import NoFont
    except ImportError as error:
        raise Refused("A GIF needs Pillow, which is not installed: pip install ladechat[gif] brings it.") from error
    from ladechat.export.film import Size, shoot

    with _told("drawing") as progress:
        frames = shoot(recording, Size(*wanted.size), progress)
    try:
        with _told("painting") as progress:
            return gif(frames, wanted.speed, progress)
    except NoFont as error:
        raise Refused(
            "A GIF is painted in a monospaced font, and none was found here; install DejaVu Sans Mono "
            "(Debian and Ubuntu: fonts-dejavu-core)."
        ) from error


@contextlib.contextmanager
def _told(doing: str) -> Iterator[Callable[[float], None]]:
    """Have it said on a terminal what is being done, and how much of it is."""
    status = Status()
    try:
        yield lambda done: status.show(f"{doing} {done:.0%}")
    finally:
        status.clear()


def _svg(recording: Recording, wanted: Wanted) -> str:
    from ladechat.export.film import Size, photograph, steps_in

    steps = steps_in(recording)
    if wanted.step is not None and wanted.step > steps:
        raise Refused(
            f"The recording has {steps:,} steps, so there is no step {wanted.step:,}; give --step a lower one."
        )
    return photograph(recording, Size(*wanted.size), wanted.step)


WRITERS: Mapping[str, Writer] = {
    "cast": _cast(3),
    "cast2": _cast(2),
    "gif": _gif,
    "html": lambda recording, _: html(talk_of(recording)),
    "svg": _svg,
    "md": lambda recording, _: markdown(talk_of(recording)),
    "json": lambda recording, _: as_json(talk_of(recording)),
}
"""By the names of their formats."""
