"""A program in a terminal of a given size: type, and look at the screen."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
from platformdirs import user_log_path

from ladechat.protocol import WHERE
from tests.waiting import wait_for

QUESTION = "What is the n-gram pool?"
BEGUN = re.compile(r"^ +The n-gram", re.MULTILINE)
"""The beginning of the answer to it."""
SUMMARY = re.compile(r"\d+ tokens · \d+ passes")
"""The end of an answer."""
SECONDS_TO_WRITE = 5
"""For an engine that hangs to say where."""


class Terminal:
    """One tmux server of its own, with one pane in which `command` runs.

    Args:
        folder: where the server's socket goes.
        size: columns and rows.
    """

    def __init__(self, command: Sequence[str], folder: Path, size: tuple[int, int]) -> None:
        self._socket = folder / "tmux"
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
        width, height = map(str, size)
        # A shell stays when the program has ended, and says how: tmux itself may miss an exit status.
        shell = ["sh", "-c", '"$@"; echo "exit status $?"; exec cat', "sh", *command]
        start = ["-f", os.devnull, "new-session", "-d", "-x", width, "-y", height]
        self._tmux(*start, *shell, environment=environment)

    def _tmux(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        command = ["tmux", "-u", "-S", str(self._socket), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, encoding="utf-8", env=environment
        ).stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def ask(self, text: str = QUESTION) -> None:
        self.type(text)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: Enter, Escape, C-q."""
        self._tmux("send-keys", *keys)

    def clear(self) -> None:
        """Clear the screen, as another program might."""
        self._tmux("send-keys", "-R")

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def coloured_screen(self) -> str:
        """The screen with its escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    def wait_for(self, what: str, *conditions: Callable[[str], object]) -> str:
        """The first screen that meets all `conditions`; an assertion with the last one seen if none does.

        Each panel is drawn by itself: what one of them shows says nothing of what another one already shows.
        """
        screen = ""

        def met() -> bool:
            nonlocal screen
            screen = self.screen()
            return all(condition(screen) for condition in conditions)

        wait_for(met, lambda: f"{what} did not come. The screen was:\n{screen}\n{self._where_engines_are()}")
        return screen

    def _where_engines_are(self) -> str:
        """The logs of the engines that run, once these have written into them what each thread waits for."""
        engines = [number for number, command in self.processes().items() if "ladechat engine" in command]
        for engine in engines:
            with contextlib.suppress(ProcessLookupError):
                os.kill(engine, WHERE)  # one that has not said its first word yet ends of it: there is no log then
        time.sleep(SECONDS_TO_WRITE)
        logs = [log for engine in engines for log in user_log_path("ladechat").glob(f"engine-*-{engine}.log")]
        return "\n".join(f"{log.name}:\n{log.read_text(encoding='utf-8')}" for log in logs)

    def wait_for_exit(self) -> int:
        """What the program ended with."""
        pattern = re.compile(r"^exit status (\d+)$", re.MULTILINE)
        ended = pattern.search(self.wait_for("The end of the program", pattern.search))
        assert ended is not None
        return int(ended[1])

    def processes(self) -> dict[int, str]:
        """The program and all that it started, as they are now: command lines by process id."""
        shell = psutil.Process(int(self._tmux("display-message", "-p", "#{pane_pid}")))
        found: dict[int, str] = {}
        for process in shell.children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile, or is a zombie
                found[process.pid] = " ".join(process.cmdline())
        return found

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")


def shows(text: str) -> Callable[[str], bool]:
    """Return whether a screen has this text on it."""
    return lambda screen: text in screen


def words(text: str) -> str:
    """A text however it is wrapped."""
    return " ".join(text.split())


def engine_process(terminal: Terminal) -> int:
    """The engine that a program in a terminal has started."""
    [engine] = [number for number, command in terminal.processes().items() if "ladechat engine" in command]
    return engine


def ui_process(terminal: Terminal) -> int:
    """The program in a terminal, without its engine."""
    commands = terminal.processes().items()
    [ui] = [number for number, command in commands if "-m ladechat" in command and "ladechat engine" not in command]
    return ui


def still_runs(process: int) -> bool:
    """Is there a process of that number?"""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def coloured_text(screen: str) -> Iterator[tuple[str, str]]:
    """The runs of text in a screen with escape sequences, each with its foreground colour's codes ("" for none)."""
    colour = ""
    for text, codes in re.findall(r"([^\x1b]*)(?:\x1b\[([0-9;]*)m)?", screen):
        if text:
            yield text, colour
        parts = iter(codes.split(";")) if codes is not None else iter(())
        for code in parts:
            if code == "38":
                kind = next(parts)
                colour = ";".join([kind, *(next(parts) for _ in range(3 if kind == "2" else 1))])
            elif code == "48":
                for _ in range(3 if next(parts) == "2" else 1):
                    next(parts)
            elif code in ("0", "39"):
                colour = ""
            elif len(code) == 2 and code[0] in "39":
                colour = code
