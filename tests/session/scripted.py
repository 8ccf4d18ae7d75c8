"""What scripts that stand in for an engine begin with, and what tests read of them."""

from collections.abc import Callable

from ladechat.protocol import Event, Loading, encode
from ladechat.session.live import LiveEngine
from tests.session.streams import HEADER

Start = Callable[[str], LiveEngine]

SPEAK = f"""
import sys, os, time, signal
said = []
def say(line):
    said.append(os.write(1, line + b"\\n"))
def loading(doing):
    if not said: say({encode(HEADER).rstrip()!r})
    say(b'{{"event":"loading","stage":1,"stages":1,"doing":"' + doing + b'"}}')
"""
"""Its first word is its header, as of any engine."""


async def all_events(engine: LiveEngine) -> list[Event]:
    return [event async for event in engine.events()]


def doings(events: list[Event]) -> list[str]:
    return [event.doing for event in events if isinstance(event, Loading)]
