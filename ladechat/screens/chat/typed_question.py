"""The typed text before it is sent: its files, its size, the user's editor, and a key that clears it."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from textual.app import SuspendNotSupported

from ladechat.attachments import CannotAttach, attachments, missing, with_files
from ladechat.protocol import MOST, Event, Ready, TurnFinished
from ladechat.screens.chat.context import Available, ChatContext
from ladechat.widgets.prompt.above_prompt import TypedSize, describe_files, size_of
from ladechat.widgets.prompt.prompt import is_command

SEEN_BYTES, SEEN_TOKENS = 400, 100
"""Where the estimate starts: English has about four bytes a token. A model's own answers soon outweigh it."""
EDITORS = ("nano", "vim", "vi")
"""The editors that are looked for if the user has named none."""
NO_FILE = "There is no file {}. Enter again sends the question as it is."
CLEARED = "Cleared. Ctrl+Z brings the text back."
NO_EDITOR = "No editor is found: name one in the shell, as in export EDITOR=nano."
NO_TERMINAL = "an editor needs a terminal, and this is a page in a browser"


class TypedQuestion:
    """Shows in a line what is sent with the typed text, and its size, and lets the text be changed as a whole."""

    def __init__(self, chat: ChatContext, line: TypedSize) -> None:
        self._chat, self._prompt, self._line = chat, chat.prompt, line
        self._typed: dict[str, str] = {}
        self._warned = ""  # the text that was held back once, since a file that it names is not there
        self._context_length = MOST
        self._bytes, self._tokens = SEEN_BYTES, SEEN_TOKENS
        self.available: Available = {"clear_prompt": lambda: not self._prompt.is_blank}

    def note(self, event: Event) -> None:
        """Learn how many bytes a token has: only the engine can count them, so the tokens of a file are estimated."""
        if isinstance(event, Ready):
            self._context_length = event.context_length
            self._bytes, self._tokens = SEEN_BYTES, SEEN_TOKENS
        elif isinstance(event, TurnFinished) and event.server is None:
            self._bytes += len(event.text.encode())
            self._tokens += len(event.token_ids)

    def show(self) -> None:
        """Show the size of the text if a part of it is out of view, and the files that are sent with it."""
        text = self._prompt.document.text
        question = "" if is_command(text) else text
        said, too_long = describe_files(attachments(question), self._bytes / self._tokens, self._context_length)
        lacking = ", ".join(f"there is no file {path}" for path in missing(question))
        size = size_of(text) if self._prompt.show_vertical_scrollbar else ""
        self._line.show(size, " · ".join(filter(None, (said, lacking))), warns=too_long or bool(lacking))

    # --- files --------------------------------------------------------------------------------------------------------

    def attach(self, typed: str) -> str | None:
        """Return a question with its files; None if one cannot be sent: the reason is shown, the text put back."""
        lacking, warned = missing(typed), self._warned == typed
        self._warned = ""
        try:
            if lacking and not warned:
                self._warned = typed
                raise CannotAttach(NO_FILE.format(" or ".join(lacking)))
            question = with_files(typed)
        except CannotAttach as refused:
            self._prompt.offer(typed)
            self._chat.refuse(str(refused))
            return None
        if question != typed:
            self._typed[question] = typed
        return question

    def as_typed(self, question: str) -> str:
        """Return a question as it was typed, without its files; as it is if it was not typed in this session."""
        return self._typed.get(question, question)

    # --- the text as a whole ------------------------------------------------------------------------------------------

    def action_clear_prompt(self) -> None:
        """Empty the prompt; this can be undone."""
        self._prompt.replace_all("")
        self._chat.notify(CLEARED)

    def action_editor(self) -> None:
        """Edit the text in the user's editor. The app stands still meanwhile."""
        command = _editor()
        if not command or shutil.which(command[0]) is None:
            self._chat.refuse(NO_EDITOR)
            return
        before = self._prompt.text
        try:
            with tempfile.TemporaryDirectory(prefix="ladechat-", ignore_cleanup_errors=True) as folder:
                file = Path(folder) / "question.md"
                file.write_bytes(before.encode())
                with self._chat.screen.app.suspend():
                    failed = _run([*command, str(file)])
                text = file.read_bytes().decode()
        except SuspendNotSupported:
            failed = NO_TERMINAL
        except (OSError, UnicodeDecodeError) as error:
            failed = (isinstance(error, OSError) and error.strerror) or "it is no text in UTF-8"
        if failed:
            self._chat.refuse(f"The text stays as it was: {failed}.")
        elif text != before:
            self._prompt.replace_all(text.removesuffix("\n").removesuffix("\r"))
        self._prompt.focus()


def _editor() -> list[str]:
    """Return the command of the user's editor, or of one that is installed; an empty one if there is none."""
    try:
        named = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    except ValueError:
        named = []
    return named or [name for name in EDITORS if shutil.which(name)][:1]


def _run(command: list[str]) -> str:
    """Run a program on the terminal; return why it failed, or "". It raises nothing: the app has to come back."""
    at_ctrl_c = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the terminal sends to this program too
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    finally:
        signal.signal(signal.SIGINT, at_ctrl_c)
    return f"{command[0]} ended with code {code}" if code else ""
