"""Standard streams that are closed, or go elsewhere: a sentence and an end, never a traceback or a blank screen."""

import itertools
import os
import pty
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.session.streams import GOLDEN

SECONDS_TO_END = 120
CLOSED = [closed for count in (1, 2, 3) for closed in itertools.combinations((0, 1, 2), count)]


class OnTerminal:
    """A command on a terminal of its own, with redirections as a shell makes them."""

    def __init__(self, arguments: Sequence[str], redirections: str) -> None:
        self._terminal, child = pty.openpty()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-m", "ladechat", *arguments],
            stdin=child,
            stdout=child,
            stderr=child,
            env={**os.environ, "TERM": "xterm-256color", "HF_HUB_OFFLINE": "1"},
            start_new_session=True,
        )
        os.close(child)

    def end(self) -> tuple[int, str]:
        """Its exit code, and all that it has written on the terminal."""
        written = b""
        try:
            while part := os.read(self._terminal, 1 << 16):
                written += part
        except OSError:  # as a terminal whose last program has ended says it on Linux
            pass
        finally:
            os.close(self._terminal)
        return self.process.wait(SECONDS_TO_END), written.decode(errors="replace")


def redirections(closed: Sequence[int]) -> str:
    return " ".join("<&-" if number == 0 else f"{number}>&-" for number in closed)


@pytest.mark.timeout(SECONDS_TO_END)
@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ([], {0, 1, 2}),
        (["replay", str(GOLDEN[-1])], {0, 1, 2}),
        (["ask", "What is it?", "--model", "nowhere/none"], {1}),
        (["ask"], {0, 1}),
        (["engine", "--model", "nowhere/none"], {0, 1}),
        (["bench", "--questions", "nothing"], {1}),
    ],
    ids=["app", "replay", "ask", "ask from a pipe", "engine", "bench"],
)
def test_whichever_streams_are_closed_a_command_ends_and_says_why(arguments: list[str], needed: set[int]) -> None:
    runs = {closed: OnTerminal(arguments, redirections(closed)) for closed in CLOSED}
    for closed, run in runs.items():
        code, written = run.end()
        assert "Traceback" not in written and "\x1b[?1049h" not in written, closed
        assert code in (1, 2), closed
        if needed & set(closed):
            assert code == 2, closed
            if not {1, 2} <= set(closed):
                assert "ladechat: " in written, closed


@pytest.mark.timeout(SECONDS_TO_END)
def test_a_screen_that_would_be_drawn_elsewhere_is_refused_on_the_terminal() -> None:
    runs = [
        OnTerminal(arguments, target)
        for arguments in ([], ["replay", str(GOLDEN[-1])])
        for target in ("2>/dev/null", "2>&1 2>/dev/full")
    ]
    for run in runs:
        code, written = run.end()
        assert (code, "drawn on standard error" in written, "\x1b[?1049h" in written) == (2, True, False)


@pytest.mark.full
def test_an_answer_that_cannot_be_written_is_said_in_a_sentence() -> None:
    run = OnTerminal(["ask", "Hello?", "--max-new-tokens", "3"], ">/dev/full")
    code, written = run.end()
    assert code == 1 and "No space left on device" in written and "Traceback" not in written
