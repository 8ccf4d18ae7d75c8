"""The commands that begin with what is typed, above the prompt; behind one with fixed choices, these."""

from collections.abc import Callable, Iterable

from textual.content import Content

from ladechat.commands import SlashCommand, find, matching
from ladechat.widgets.cells import cell_len
from ladechat.widgets.marked_list import MarkedList

MOST_ROWS = 8
GAP = 2


class SlashCommandList(MarkedList):
    """A list that the prompt shows and steers. It never has the focus: what is typed goes to the prompt."""

    DEFAULT_CSS = f"""
    SlashCommandList {{ display: none; height: auto; max-height: {MOST_ROWS}; border: none; padding: 0; }}
    SlashCommandList:focus {{ border: none; }}
    """

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False, id="commands")
        self.can_focus = False
        self._offered: list[SlashCommand] = []
        self.choices: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {}
        """By the name of a command, what can stand behind it: each with its other name, if it has one."""

    @property
    def marked(self) -> SlashCommand | None:
        """The command that Enter runs, and Tab writes out."""
        place = self.highlighted
        return self._offered[place] if place is not None and place < len(self._offered) else None

    def offer(self, text: str) -> None:
        """Show the commands that begin with a text, which is all that is typed; none for a text that is no such."""
        offered = self._beginning_with(text[1:]) if text.startswith("/") and not text[1:2].isspace() else []
        if offered and offered != self._offered:
            width = max(cell_len(command.usage) for command in offered) + GAP
            self.clear_options()
            self.add_options([_row(command, width) for command in offered])
            self._offered = offered
            self.highlighted = 0
        self.display = bool(offered)

    def _beginning_with(self, typed: str) -> list[SlashCommand]:
        name, behind, choice = typed.partition(" ")
        command = find(name)
        if not behind:
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
