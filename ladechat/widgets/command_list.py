"""The commands that begin with what is typed, above the prompt."""

from textual.content import Content
from textual.widgets import OptionList

from ladechat.commands import SlashCommand, matching

MOST_ROWS = 8
GAP = 2


class SlashCommandList(OptionList):
    """A list that the prompt shows and steers. It never has the focus: what is typed goes to the prompt."""

    DEFAULT_CSS = f"""
    SlashCommandList {{ display: none; height: auto; max-height: {MOST_ROWS}; border: none; padding: 0; }}
    SlashCommandList:focus {{ border: none; }}
    """

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False, id="commands")
        self.can_focus = False
        self._offered: list[SlashCommand] = []

    @property
    def marked(self) -> SlashCommand | None:
        """The command that Enter runs, and Tab writes out."""
        place = self.highlighted
        return self._offered[place] if place is not None and place < len(self._offered) else None

    def offer(self, text: str) -> None:
        """Show the commands that begin with a text, which is all that is typed; none for a text that is no such."""
        is_name = text.startswith("/") and len(text.split()) == 1 and not text[-1].isspace()
        offered = matching(text[1:]) if is_name else []
        if offered and offered != self._offered:
            width = max(len(command.usage) for command in offered) + GAP
            self.clear_options()
            self.add_options([_row(command, width) for command in offered])
            self._offered = offered
            self.highlighted = 0
        self.display = bool(offered)


def _row(command: SlashCommand, width: int) -> Content:
    return Content.assemble((command.usage.ljust(width), "bold"), command.help)
