"""Makes what moves in the documents, by the export that everybody has: a race, the window at work, the lessons.

    python tools/pictures.py

The engine and its answers are real, with the bundled model. Needs the extra `gif` and the font DejaVu Sans Mono.
"""

import argparse
import asyncio
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from ladechat.engine_options import EngineOptions
from ladechat.export.command import Wanted, run, run_lessons
from ladechat.export.film import shoot_race
from ladechat.export.gif import gif
from ladechat.export.race_page import race_page
from ladechat.protocol import Message, Settings
from ladechat.screens.learn.lesson_session import lesson_session
from ladechat.session.change import ViewerPace
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.engine import State
from ladechat.session.live import LiveEngine
from ladechat.session.measuring import Measuring
from ladechat.session.recordings.recorder import SUFFIX
from ladechat.session.session import Session

DOCS = Path(__file__).parent.parent / "docs"
SIZE = (100, 30)
"""900 pixels wide, about what a page shows."""
RACE_QUESTION, RACE_SPEED = "How does verification work?", 2.0
WINDOW_QUESTION, WINDOW_RATE, WINDOW_SPEED = "How does lookahead decoding work?", 8.0, 1.5
IDLE_SECONDS = 0.5
"""Pauses are shortened to that: the film begins with the question."""
ENGINE = EngineOptions(settings=Settings(decoder="lookahead"))
FRAME_SECONDS = 0.05


def race() -> Iterator[Path]:
    """A race, as a film and as a page."""
    measuring = Measuring(LiveEngine(ENGINE.command()), [Message(role="user", content=RACE_QUESTION)])
    asyncio.run(measuring.run())
    film, page = DOCS / "race.gif", DOCS / "race.html"
    film.write_bytes(gif(shoot_race(measuring, SIZE).frames, RACE_SPEED))
    yield film
    page.write_text(race_page(measuring), encoding="utf-8")
    yield page


def lessons() -> Iterator[Path]:
    """The lessons as a page."""
    out = DOCS / "learn.html"
    run_lessons(lesson_session(), 0, out, force=True)
    yield out


def window() -> Iterator[Path]:
    """The window at work, at a pace that can be followed."""
    out = DOCS / "window.gif"
    with TemporaryDirectory() as folder:
        talk = Path(folder) / f"talk{SUFFIX}"
        asyncio.run(recorded(talk))
        run(talk, out, "gif", Wanted(SIZE, speed=WINDOW_SPEED, idle_limit=IDLE_SECONDS, step=None), force=True)
    yield out


async def recorded(talk: Path) -> None:
    """Record an answer."""
    session = Session(lambda _: LiveEngine(ENGINE.command()), ENGINE.settings, Conversation())
    session.start()
    while session.state is not State.READY:
        await frame(session)
    session.recorder.start(talk)
    session.set_pace(ViewerPace(rate=WINDOW_RATE))
    session.ask(WINDOW_QUESTION)
    while session.asking:
        await frame(session)
    await session.close()


async def frame(session: Session) -> None:
    """Take in what has come in a moment."""
    if session.state is State.ENDED:
        raise SystemExit("The engine has ended; ladechat ask says why.")
    session.frame()
    await asyncio.sleep(FRAME_SECONDS)


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    for out in chain(race(), lessons(), window()):
        out.chmod(0o644)  # an export is its user's alone until it is handed on
        print(f"docs/{out.name}: {out.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
