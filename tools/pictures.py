"""Makes the pictures of the README that move: a race, and the window at work, by the export that everybody has.

    python tools/pictures.py

The engine and its answers are real, with the bundled model. Needs the extra `gif` and the font DejaVu Sans Mono.
"""

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from ladechat.engine_options import EngineOptions
from ladechat.export.command import Wanted, run
from ladechat.export.film import shoot_race
from ladechat.export.gif import gif
from ladechat.protocol import Message, Settings
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


def race(out: Path) -> None:
    """A race, pass by pass."""
    measuring = Measuring(LiveEngine(ENGINE.command()), [Message(role="user", content=RACE_QUESTION)])
    asyncio.run(measuring.run())
    out.write_bytes(gif(shoot_race(measuring, SIZE).frames, RACE_SPEED))


def window(out: Path) -> None:
    """The window at work, at a pace that can be followed."""
    with TemporaryDirectory() as folder:
        talk = Path(folder) / f"talk{SUFFIX}"
        asyncio.run(recorded(talk))
        run(talk, out, "gif", Wanted(SIZE, speed=WINDOW_SPEED, idle_limit=IDLE_SECONDS, step=None), force=True)
    out.chmod(0o644)  # an export is its user's alone until it is handed on


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
    for make in (race, window):
        out = DOCS / f"{make.__name__}.gif"
        make(out)
        print(f"docs/{out.name}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
