"""The app with a real engine, without a terminal: somebody chats by seeded dice; a line of JSON after each turn.

    python -m tests.app.chatting MINUTES FOLDER

The minutes, and the lines, begin after the warm-up. Conversations go into FOLDER.
"""

import asyncio
import contextlib
import random
import sys
import time
from functools import partialmethod
from pathlib import Path
from typing import Any

import msgspec
from textual.pilot import Pilot

from ladechat import catalog
from ladechat.app import LadechatApp, run_chat
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Configure, Settings
from ladechat.screens.chat.screen import ChatScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.prompt.prompt import Prompt
from tests.growth import bytes_in_use, descriptors, private_bytes
from tests.soaking import QUESTIONS, is_warm
from tests.waiting import until

LONGEST = 150
SCREENS = ("f1", "question_mark", "f3", "ctrl+o")
"""Keys that open one, which Esc closes."""


class Seen(msgspec.Struct):
    """What the app's process takes after a turn."""

    seconds: float
    in_use: int
    private: int
    descriptors: int
    tasks: int
    timers: int


def seen(began: float) -> Seen:
    """Measure this process."""
    scheduled = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return Seen(
        seconds=time.monotonic() - began,
        in_use=bytes_in_use(),
        private=private_bytes(),
        descriptors=descriptors(),
        tasks=len(asyncio.all_tasks()),
        timers=sum(not one.cancelled() for one in scheduled),
    )


async def chat(pilot: Pilot[Any], minutes: float) -> None:
    """For some minutes ask, stop, change decoders, open and close screens, begin new conversations; then leave."""
    dice, began, turns = random.Random(0), time.monotonic(), 0
    screen = pilot.app.screen
    assert isinstance(screen, ChatScreen)
    await until(lambda: screen.query(Prompt), pilot)
    while not is_warm(began, turns):
        await turn(pilot, screen, dice)
        turns += 1
    began = time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        await turn(pilot, screen, dice)
        print(msgspec.json.encode(seen(began)).decode(), file=sys.__stdout__, flush=True)
    pilot.app.exit(0)


async def turn(pilot: Pilot[Any], screen: ChatScreen, dice: random.Random) -> None:
    """One question and its answer, or a part of it, and what else is done between two."""
    session = screen._session
    if dice.random() < 0.15:
        await pilot.press("ctrl+l")
    if dice.random() < 0.2:
        await pilot.press(dice.choice(SCREENS))
        await pilot.press("escape")
        await until(lambda: pilot.app.screen is screen, pilot)
    session.configure(Configure(decoder=dice.choice(list(catalog.DECODERS)), temperature=dice.choice((0.0, 0.7, 1.2))))
    screen.query_one(Prompt).load_text(dice.choice(QUESTIONS))
    await pilot.press("enter")
    if dice.random() < 0.3:
        await pilot.press("escape")
    await until(lambda: not session.asking, pilot)


def main(minutes: float, folder: Path) -> int:
    """Run the app as `ladechat` does, but for its terminal."""

    async def by_dice(pilot: Pilot[Any]) -> None:
        await chat(pilot, minutes)

    headless = partialmethod(LadechatApp.run, headless=True, size=(140, 40), auto_pilot=by_dice)
    LadechatApp.run = headless  # type: ignore[assignment, method-assign]
    options = EngineOptions(model="demo", settings=Settings(decoder="auto"))
    with contextlib.redirect_stdout(sys.stderr):
        return run_chat(options, max_new_tokens=LONGEST, store=ConversationStore(folder))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2])))
