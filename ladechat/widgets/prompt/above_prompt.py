"""What stands above the prompt: slash commands, waiting questions, and the size of a text that is not all visible."""

from collections.abc import Callable, Iterable

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ladechat.commands import SlashCommand, find, matching
from ladechat.widgets.cells import cell_len, printable
from ladechat.widgets.formatting import counted
from ladechat.widgets.lists import MarkedList

MOST_COMMANDS = 8
GAP = 2


class SlashCommandList(MarkedList):
    """A list that the prompt shows and controls. It is never focused: keys go to the prompt."""

    DEFAULT_CSS = f"""
    SlashCommandList {{ display: none; height: auto; max-height: {MOST_COMMANDS}; border: none; padding: 0; }}
    SlashCommandList:focus {{ border: none; }}
    """

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False, id="commands")
        self.can_focus = False
        self._offered: list[SlashCommand] = []
        self.choices: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {}
        """For a command's name, the possible arguments, each with an alias or ""."""

    @property
    def marked(self) -> SlashCommand | None:
        """The command that Enter runs and Tab completes."""
        place = self.highlighted
        return self._offered[place] if place is not None and place < len(self._offered) else None

    def offer(self, text: str) -> None:
        """Show the commands that begin with `text`, the whole prompt; none if it is no command."""
        offered = self._beginning_with(text[1:]) if text.startswith("/") and not text[1:2].isspace() else []
        if offered and offered != self._offered:
            width = max(cell_len(command.usage) for command in offered) + GAP
            self.clear_options()
            self.add_options([_row(command, width) for command in offered])
            self._offered = offered
            self.highlighted = 0
        self.display = bool(offered)

    def _beginning_with(self, typed: str) -> list[SlashCommand]:
        name, separator, choice = typed.partition(" ")
        command = find(name)
        if not separator:
            return matching(typed) if typed == typed.strip() else []
        if command is None or command.name not in self.choices:
            return []
        wanted = choice.strip().casefold()
        return [
            SlashCommand(f"{command.name} {one}", text, command.action)
            for one, text in self.choices[command.name]()
            if one.casefold().startswith(wanted) or text.casefold().startswith(wanted)
        ]


def _row(command: SlashCommand, width: int) -> Content:
    return Content.assemble((command.usage.ljust(width), "bold"), command.short or command.help)


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


LINES_SEEN = 6
"""Maximum visible lines of the prompt."""
CHARACTERS_SEEN = 400
"""Visible characters of one line, in a narrow terminal."""


class PromptSize(Widget):
    """One line above the prompt, as "48 lines, 3,120 characters"; empty if the whole text is visible."""

    DEFAULT_CSS = """
    PromptSize { height: 1; color: $text-muted; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__(id="size", markup=False)
        self.display = False
        self._text = ""

    def show(self, text: str) -> None:
        """Show the size of a text."""
        self._text = size_of(text)
        self.display = bool(self._text)
        self.refresh()

    def render(self) -> str:
        return self._text


def size_of(text: str) -> str:
    """Return the lines and characters of a text, in words; "" if it is short. A final line break begins no line."""
    rows = text.count("\n") + 1
    lines = rows - text.endswith("\n")
    if rows <= LINES_SEEN and len(text) <= CHARACTERS_SEEN:
        return ""
    return f"{counted(lines, 'line')}, {counted(len(text), 'character')}"
