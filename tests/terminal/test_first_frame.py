"""The very first bytes that are drawn: no frame shows anything that the next ones take back."""

import os
import re
import sys
from pathlib import Path

import pyte
import pytest

from benchmarks.ui_terminal import END_OF_UPDATE, Terminal
from tests.waiting import wait_for

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]

NOT_FOR_PYTE = re.compile(r"\x1b\[[<>=?][0-9;$]*[a-zA-Z]")
FOCUSED = "▌"
"""The bar at the left of a conversation that has the focus."""


def first_bytes(size: tuple[int, int], settings: Path) -> bytes:
    """What ladechat draws until it asks for a question."""
    environment = {**os.environ, "XDG_CONFIG_HOME": str(settings)}
    terminal = Terminal([sys.executable, "-m", "ladechat", "--no-save"], environment, size)
    drawn = b""

    def asks() -> bool:
        nonlocal drawn
        drawn += terminal.listen(0.1)
        return b"sk something" in drawn and drawn.endswith(END_OF_UPDATE)  # the cursor is on the A

    try:
        wait_for(asks, lambda: drawn[-300:])
    finally:
        terminal.close()
    return drawn


@pytest.mark.parametrize("size", [(80, 24), pytest.param((200, 60), marks=pytest.mark.full)], ids=["80x24", "200x60"])
def test_every_frame_has_the_welcome_as_it_stays_and_the_focus_in_the_prompt(
    size: tuple[int, int], tmp_path: Path
) -> None:
    screen = pyte.Screen(*size)
    stream = pyte.Stream(screen)
    frames = first_bytes(size, tmp_path).decode().split(END_OF_UPDATE.decode())
    shown = 0
    for frame in frames:
        stream.feed(NOT_FOR_PYTE.sub("", frame))
        text = "\n".join(screen.display)
        assert FOCUSED not in text
        if "Ask" in text:
            assert "How does" in text and "Ask something. Enter sends" in text
            shown += 1
    assert shown
