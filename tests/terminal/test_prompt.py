"""The prompt in a real terminal: keys that only terminals send, the user's editor, and a file."""

from pathlib import Path

import pytest

from tests.terminal.conftest import Start
from tests.terminal.tmux import SUMMARY, shows

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(900)]

ASKS = '#!/bin/sh\nprintf "Editing: "; head -c 3 "$1"; read answer\nprintf "%s" "$answer" >> "$1"\n'
"""An editor that shows the beginning of its file, and adds what is typed."""


def test_a_new_line_the_users_editor_and_a_file(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text(ASKS)
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    (tmp_path / "notes.txt").write_text("The pool keeps n-grams.\n")
    monkeypatch.chdir(tmp_path)
    terminal = start((80, 24), "--decoder", "lookahead", "--max-new-tokens", "20")
    terminal.type("one")
    terminal.press("M-Enter")
    terminal.type("two ")
    terminal.wait_for("Both lines", lambda screen: " one\n two" in screen)
    terminal.press("C-x", "C-e")
    terminal.wait_for("The editor", shows("Editing: one"))
    terminal.ask("@notes.txt")
    terminal.wait_for("The text and its file", shows(" one"), shows("with notes.txt (about 6 tokens)"))
    terminal.press("Enter")
    screen = terminal.wait_for("The end of the answer", SUMMARY.search, shows("/continue"), shows("raises it"))
    assert "The pool keeps n-grams." in screen and "at most 20 tokens" in screen
    terminal.press("C-q")
    assert terminal.wait_for_exit() == 0
