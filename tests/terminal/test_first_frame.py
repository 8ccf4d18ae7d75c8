"""The very first bytes that are drawn: no frame shows anything that the next ones take back."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pyte
import pytest

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]

DEADLINE_SECONDS = 150
ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[?2048$p": b"\x1b[?2048;0$y"}
"""What terminals are asked, and what they say: they show updates whole, and report no sizes by themselves."""
END_OF_UPDATE = "\x1b[?2026l"
NOT_FOR_PYTE = re.compile(r"\x1b\[[<>=?][0-9;$]*[a-zA-Z]")
FOCUSED = "▌"
"""The bar at the left of a conversation that has the focus."""


def first_bytes(size: tuple[int, int]) -> bytes:
    """What ladechat draws until it asks for a question."""
    columns, rows = size
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    command = [sys.executable, "-m", "ladechat", "--no-save"]
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    drawn, deadline = b"", time.monotonic() + DEADLINE_SECONDS
    try:
        while not ("Ask something" in drawn.decode(errors="replace") and drawn.endswith(END_OF_UPDATE.encode())):
            assert time.monotonic() < deadline, drawn[-300:]
            if select.select([outer], [], [], 0.1)[0]:
                part = os.read(outer, 1 << 16)
                for question, answer in ANSWERS.items():
                    if question in part:
                        os.write(outer, answer)
                drawn += part
    finally:
        process.kill()
        process.wait()
        os.close(outer)
    return drawn


@pytest.mark.parametrize("size", [(80, 24), pytest.param((200, 60), marks=pytest.mark.full)], ids=["80x24", "200x60"])
def test_every_frame_has_the_welcome_as_it_stays_and_the_focus_in_the_prompt(size: tuple[int, int]) -> None:
    screen = pyte.Screen(*size)
    stream = pyte.Stream(screen)
    frames = first_bytes(size).decode().split(END_OF_UPDATE)
    shown = 0
    for frame in frames:
        stream.feed(NOT_FOR_PYTE.sub("", frame))
        text = "\n".join(screen.display)
        assert FOCUSED not in text
        if "Ask" in text:
            assert "How does" in text and "Ask something. Enter sends" in text
            shown += 1
    assert shown
