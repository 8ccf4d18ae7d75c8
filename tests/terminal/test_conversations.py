"""The whole program, left and started again: what was said is still there."""

from pathlib import Path

import pytest

from tests.terminal.conftest import Start
from tests.terminal.tmux import QUESTION, SUMMARY

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]


@pytest.mark.full
def test_a_conversation_goes_on_after_the_program_was_left(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    first = start((80, 24), "--max-new-tokens", "8")
    first.ask()
    first.wait_for("The end of the answer", SUMMARY.search)
    first.press("C-q")
    assert first.wait_for_exit() == 0
    assert "ladechat --continue goes on with this conversation." in first.screen()

    again = start((80, 24), "--max-new-tokens", "8", "--continue", first=QUESTION)
    again.ask("And G?")
    again.wait_for("The end of the second answer", lambda screen: SUMMARY.search(screen.partition("And G?")[2]))
    again.press("C-o")
    again.wait_for("The list", lambda screen: "Conversations · 1" in screen and "2 questions" in screen)
    again.press("Escape")
    again.wait_for("The chat", lambda screen: "And G?" in screen and "Conversations" not in screen)
    again.press("Up", "Up")
    # The prompt stands above the status line and the keys.
    again.wait_for("A question of the first session in the prompt", lambda screen: QUESTION in screen[-400:])
    again.press("C-q")
    assert again.wait_for_exit() == 0
