"""What stands above the prompt: waiting questions, and the files and the size of the typed text."""

from collections.abc import Sequence

from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from ladechat.attachments import Attachment
from ladechat.own_keys import with_own_keys
from ladechat.protocol import MOST
from ladechat.widgets.cells import printable
from ladechat.widgets.formatting import counted

MOST_ROWS = 3
MOST_CHARACTERS = 1000
"""Limit on the shown characters of a question: more than any terminal has room for."""
HEADING = "waiting · ↑ takes the last one back"


class WaitingQuestions(Widget):
    """A line for each question, the next one first; of many, the first, the number of others, and the last."""

    DEFAULT_CSS = """
    WaitingQuestions { display: none; height: auto; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    questions: reactive[tuple[str, ...]] = reactive((), layout=True)

    def __init__(self) -> None:
        super().__init__(id="waiting", markup=False)

    def watch_questions(self) -> None:
        self.display = bool(self.questions)

    def render(self) -> str:
        """Return each question on one line, cut if there is no room."""
        return "\n".join([with_own_keys(HEADING, self.app), *rows(self.questions)])


def rows(questions: tuple[str, ...]) -> list[str]:
    """Return the questions in at most `MOST_ROWS` rows."""
    shown = [f"» {printable(' '.join(question[:MOST_CHARACTERS].split()))}" for question in questions]
    if len(shown) <= MOST_ROWS:
        return shown
    beyond = len(shown) - MOST_ROWS + 1
    return [*shown[: MOST_ROWS - 2], f"  … {beyond} more …", shown[-1]]


class TypedSize(Static):
    """One line above the prompt: the files that are sent with its text, with their tokens, and the size of a text that
    is not all visible.
    """

    DEFAULT_CSS = """
    TypedSize { display: none; color: $text-muted; background: $surface; }
    TypedSize.-warns { color: $text-warning; }
    """

    def __init__(self) -> None:
        super().__init__(id="size", markup=False)

    def show(self, size: str, files: str, *, warns: bool) -> None:
        """Show the size of a text and its files, in words; nothing if both are empty."""
        text = printable(" · ".join(filter(None, (size, files))))
        self.set_class(warns, "-warns")
        if text != self.content:  # else each key would lay the whole screen out anew
            self.display = bool(text)
            self.update(text)


def size_of(text: str) -> str:
    """Return the lines and characters of a text, in words. A final line break begins no line."""
    lines = text.count("\n") + 1 - text.endswith("\n")
    return f"{counted(lines, 'line')}, {counted(len(text), 'character')}"


def describe_files(files: Sequence[Attachment], bytes_per_token: float, context_length: int) -> tuple[str, bool]:
    """Return the files that are sent with a question, with their estimated tokens, and whether they are more than the
    model's context holds.
    """
    tokens = {one.path: one.size / bytes_per_token for one in files}
    if not tokens:
        return "", False
    said = ", ".join(f"{path} (about {counted(_rounded(count), 'token')})" for path, count in tokens.items())
    if context_length < MOST and sum(tokens.values()) >= context_length:
        return f"with {said}: too long for the model's context of {context_length:,}", True
    return f"with {said}", False


def _rounded(tokens: float) -> int:
    """Return a number with the two figures that an estimate has."""
    return int(float(f"{max(tokens, 1):.2g}"))
