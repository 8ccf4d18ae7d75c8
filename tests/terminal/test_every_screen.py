"""The whole program over the real engine, once through every screen, by keys alone."""

import re
from pathlib import Path

import pytest

from tests.terminal.conftest import Start
from tests.terminal.tmux import BEGUN, QUESTION, Terminal, shows

pytestmark = [pytest.mark.terminal, pytest.mark.full, pytest.mark.timeout(1800)]

WINDOW = re.compile(r"Jacobi window.* N \d")
"""The panel's title; answers speak of the window too."""
CLOSE = "esc Close"
"""In the footer of what stands over the chat."""


def opened(terminal: Terminal, what: str, keys: tuple[str, ...], *words: str) -> None:
    """Open something over the chat, see these words on it, and go back by Escape."""
    terminal.press(*keys)
    screen = terminal.wait_for(what, lambda screen: all(word in screen for word in words))
    assert "Traceback" not in screen
    terminal.press("Escape")
    terminal.wait_for("The chat behind it", lambda screen: words[0] not in screen)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["80x24", "200x60"])
def test_every_screen_comes_when_it_is_asked_for_and_goes_again(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    recording = tmp_path / "talk.ladechat.jsonl"
    terminal = start(size, "--record", str(recording), "--max-new-tokens", "40", "--decoder", "lookahead")
    terminal.press("F6")  # four steps a second leave time to stop it
    terminal.ask()
    terminal.wait_for("The beginning of the answer", BEGUN.search)
    terminal.press("Escape")
    terminal.wait_for("What was stopped", lambda screen: re.search(r"\d+ tokens .*stopped", screen, re.DOTALL))

    terminal.press("Left", "Left")
    terminal.wait_for("A step that is looked back at", lambda screen: "of this answer" in screen)
    terminal.press("F10")
    terminal.wait_for("The mask alone", lambda screen: "lookahead branch" in screen and not WINDOW.search(screen))
    terminal.press("F10")
    terminal.wait_for("The history alone", lambda screen: "history of a token" in screen)
    terminal.press("F10", "Escape")
    terminal.wait_for("All panels, at the newest step", lambda screen: "of this answer" not in screen)

    opened(terminal, "The explanations", ("?",), CLOSE, "Jacobi window")
    opened(terminal, "The help", ("F1",), CLOSE, "What you see", "One forward pass of the model")
    opened(terminal, "The palette", ("C-p",), "Search for commands", "Continue the answer")
    opened(terminal, "The conversations", ("C-o",), "Conversations · 1", "1 question")
    opened(terminal, "The settings", ("/", "s", "e", "t", "t", "i", "n", "g", "s", "Enter"), CLOSE, "top-k")

    terminal.press("F9")
    terminal.wait_for("The race", lambda screen: "1 of 4" in screen)
    terminal.wait_for("The start of the race", lambda screen: "pass by pass" in screen)
    terminal.press("End")
    names = ("plain decoding", "lookahead", "hidden transfer", "auto")
    terminal.wait_for("The seal", re.compile(r"✓ (\d+) of \1 tokens identical").search, *map(shows, names))
    terminal.press("Escape")
    terminal.wait_for("The chat behind the race", shows("Race on"), shows("Ask something"))
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
    assert "Traceback" not in terminal.screen()

    replay = start(size, "replay", str(recording), first="question")
    replay.press("End")
    replay.wait_for("The end of the replay", lambda screen: "■" in screen and "stopped" in screen)
    replay.press("Home", "Right")
    replay.wait_for("Its first step", lambda screen: "‖" in screen and QUESTION in screen)
    replay.press("q")
    assert replay.wait_for_exit() == 0
    assert "Traceback" not in replay.screen()
