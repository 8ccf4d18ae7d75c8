"""Questions that wait for an answer to end, shown above the prompt."""

from textual.reactive import reactive
from textual.widget import Widget

from ladechat.widgets.cells import printable

MOST_ROWS = 3
MOST_CHARACTERS = 1000
"""Limit on the shown characters of a question: more than any terminal has room for."""
HEADING = "waiting · ↑ takes the last one back"


class WaitingQuestions(Widget):
    """A line for each question, the next one first; of many, the first, the number of others, and the last."""

    DEFAULT_CSS = """
    WaitingQuestions { height: auto; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    questions: reactive[tuple[str, ...]] = reactive((), layout=True)

    def __init__(self) -> None:
        super().__init__(id="waiting", markup=False)
        self.display = False

    def watch_questions(self) -> None:
        self.display = bool(self.questions)

    def render(self) -> str:
        """Return each question on one line, cut if there is no room."""
        return "\n".join([HEADING, *rows(self.questions)])


def rows(questions: tuple[str, ...]) -> list[str]:
    """Return the questions in at most `MOST_ROWS` rows."""
    shown = [f"» {printable(' '.join(question[:MOST_CHARACTERS].split()))}" for question in questions]
    if len(shown) <= MOST_ROWS:
        return shown
    beyond = len(shown) - MOST_ROWS + 1
    return [*shown[: MOST_ROWS - 2], f"  … {beyond} more …", shown[-1]]
