"""The list above the prompt: slash commands that begin with the typed text, or the fixed choices of a command."""

from collections.abc import Callable, Iterable

from textual.content import Content

from ladechat.commands import SlashCommand, find, matching
from ladechat.widgets.cells import cell_len
from ladechat.widgets.lists.marked_list import MarkedList

MOST_ROWS = 8
GAP = 2


class SlashCommandList(MarkedList):
    """A list that the prompt shows and controls. It is never focused: keys go to the prompt."""

    DEFAULT_CSS = f"""
    SlashCommandList {{ display: none; height: auto; max-height: {MOST_ROWS}; border: none; padding: 0; }}
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
