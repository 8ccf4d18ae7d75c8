"""Questions that wait for the answer before theirs, above the prompt."""

from textual.reactive import reactive
from textual.widget import Widget

from ladechat.widgets.cells import printable

MOST_ROWS = 3
MOST_CHARACTERS = 1000
"""Of a question: more than any terminal has room for."""
HEADING = "waiting · ↑ takes the last one back"


class WaitingQuestions(Widget):
    """A line for each question, the next one first; of many, for the first, how many more, and the last."""

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
        """Each question on one line, which is cut where there is no room."""
        return "\n".join([HEADING, *rows(self.questions)])


def rows(questions: tuple[str, ...]) -> list[str]:
    """The questions, at most `MOST_ROWS` rows."""
    shown = [f"» {printable(' '.join(question[:MOST_CHARACTERS].split()))}" for question in questions]
    if len(shown) <= MOST_ROWS:
        return shown
    beyond = len(shown) - MOST_ROWS + 1
    return [*shown[: MOST_ROWS - 2], f"  … {beyond} more …", shown[-1]]
