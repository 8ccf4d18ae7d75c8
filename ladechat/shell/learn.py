"""`ladechat learn`: lookahead decoding in seven scenes, on the real engine with the bundled model."""

import gc
import sys
from typing import Annotated

import typer

from ladechat.checks import check_screen
from ladechat.refusing import fail

SCENES = 7
"""The number of scenes. The scenes themselves need a screen, and are imported with it."""


def learn(
    scene: Annotated[
        int | None, typer.Option("--from", metavar="SCENE", min=1, max=SCENES, help="Begin with this scene.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget how far you were, and begin anew.")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Do not keep how far you are.")] = False,
) -> None:
    """Learn in seven scenes of a minute how it works; goes on where you left (docs/learn.md)."""
    if restart and scene is not None:
        fail("--restart begins with the first scene, and --from with another; give one of them.")
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail("The lessons need a terminal; run them in one, without a pipe.")
    check_screen()
    gc.disable()  # until the first frame is shown, as in a chat
    from ladechat.app import run_lessons
    from ladechat.lessons.progress import Progress, ProgressFile

    file = ProgressFile()
    progress, notice = (Progress(), "") if restart else file.read()
    if scene is not None:
        progress = progress.at_scene(scene - 1)
    raise typer.Exit(run_lessons(progress, None if no_save else file, notice))
