"""Starting the program in a terminal."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.terminal.tmux import Terminal

SLOW = ["--decoder", "lookahead", "--window", "64", "--ngram", "16", "--guesses", "64", "--dtype", "float64"]
"""Settings under which an answer of the bundled model takes long enough to be stopped on the way."""


class Start(Protocol):
    """Starts ladechat in a terminal of a given size, with options, and waits for what its first frame says."""

    def __call__(self, size: tuple[int, int], *options: str, first: str = "Ask something") -> Terminal: ...


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts programs that know no settings of other tests, and sees to it that their terminals end."""
    if shutil.which("tmux") is None:
        assert not os.environ.get("LADECHAT_TESTS_NEED_TMUX"), "tmux is missing"
        pytest.skip("needs tmux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    terminals: list[Terminal] = []

    def start(size: tuple[int, int], *options: str, first: str = "Ask something") -> Terminal:
        folder = tmp_path / f"terminal-{len(terminals)}"
        folder.mkdir()
        terminal = Terminal([sys.executable, "-m", "ladechat", *options], folder, size)
        terminals.append(terminal)
        terminal.wait_for("The first frame", lambda screen: first in screen)
        return terminal

    yield start
    for terminal in terminals:
        terminal.close()
