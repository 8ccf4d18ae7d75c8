"""`ladechat learn`: both methods in seven scenes, on the real engine with the bundled model, and ten questions."""

import gc
import sys
from pathlib import Path
from typing import Annotated

import typer

from ladechat.checks import check_screen
from ladechat.export.command import check_target, refusals_printed, run_lessons
from ladechat.formats import ending
from ladechat.refusing import fail

CHAPTERS = 8
"""The number of scenes and, last, of the ten questions. They need a screen, and are imported with it."""


def learn(
    scene: Annotated[
        int | None,
        typer.Option("--from", metavar="SCENE", min=1, max=CHAPTERS, help="Begin with this scene; 8: the questions."),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget how far you were, and begin anew.")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Do not keep how far you are.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead make a page that plays the scenes in a browser, .html."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Learn in seven scenes, ten minutes, how it works, then test yourself; goes on where you left (docs/learn.md)."""
    if restart and scene is not None:
        fail("--restart begins with the first scene, and --from with another; give one of them.")
    if export is not None:
        _export(export, scene, restart or no_save, force)
        return
    if force:
        fail("--force overwrites what --export names; give both, or leave it out.")
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail("The lessons need a terminal; run them in one, without a pipe.")
    check_screen()
    gc.disable()  # until the first frame is shown, as in a chat
    from ladechat.app import run_lessons as run_on_screen
    from ladechat.lessons.progress import Progress, ProgressFile

    file = ProgressFile()
    progress, notice = (Progress(), "") if restart else file.read()
    if scene is not None:
        progress = progress.at_scene(scene - 1)
    raise typer.Exit(run_on_screen(progress, None if no_save else file, notice))


def _export(out: Path, scene: int | None, of_a_reader: bool, force: bool) -> None:
    """Play the scenes with the bundled model, and make a page of them."""
    if ending(out) != "html":
        fail(f"{out} is no name for a page; end it in .html.")
    if of_a_reader:
        fail("--restart and --no-save are about how far you are, and a page saves nothing; leave them out.")
    if scene == CHAPTERS:
        fail("The ten questions have no page, since nothing runs in them; begin with a scene from 1 to 7.")
    with refusals_printed():
        check_target(out, force=force)
        from ladechat.screens.learn.lesson_session import lesson_session

        run_lessons(lesson_session(), 0 if scene is None else scene - 1, out, force=force)
