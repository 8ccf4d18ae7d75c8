"""The list above the prompt of what the typed text may become: slash commands, their choices, files after an `@`."""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from textual.content import Content

from ladechat.attachments import begun, named, paths_from
from ladechat.commands import SlashCommand, find, matching
from ladechat.keys import APP_KEYS, key_names
from ladechat.own_keys import in_own_keys, keymap_of
from ladechat.widgets.cells import cell_len, printable
from ladechat.widgets.lists import MarkedList

MOST_ROWS = 8
GAP = 2
FILES = ("replay", "export")
"""The commands whose argument is the path of a file."""
MAY_BE_PATHS = ("model",)
"""The commands whose argument may be a path: it is one if it begins with one of `PATH_SIGNS`."""
ATTACHES = ("race",)
"""The commands whose text is a question, which may name files."""
KEYS = {key.action: key for key in APP_KEYS}
PATH_SIGNS = ("/", "./", "../", "~/")
"""How a path begins where something else is possible."""


class Completion(NamedTuple):
    """A row of the list.

    Attributes:
        label, help: what is shown.
        typed: the text up to the cursor that it replaces.
        text: its replacement.
        enter: what Enter does: "sends" it, only "writes" it, or "ignores" it, since a path may be typed to its end.
        key: the keys that do the same; "" if there are none.
    """

    label: str
    help: str
    typed: str
    text: str
    enter: Literal["sends", "writes", "ignores"] = "sends"
    key: str = ""

    @property
    def is_typed(self) -> bool:
        return self.typed.rstrip() == self.text.rstrip()


class Completions(MarkedList):
    """A list that the prompt shows and controls. It is never focused: keys go to the prompt."""

    DEFAULT_CSS = f"""
    Completions {{ display: none; height: auto; max-height: {MOST_ROWS}; border: none; padding: 0; }}
    Completions:focus {{ border: none; }}
    """

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False, id="commands")
        self.can_focus = False
        self._offered: list[Completion] = []
        self.choices: dict[str, Callable[[], Iterable[tuple[str, str, str]]]] = {}
        """For a command's name, the possible arguments, each with an alias or "", and what it does."""

    @property
    def marked(self) -> Completion | None:
        """The row that Tab writes."""
        place = self.highlighted
        return self._offered[place] if self.display and place is not None and place < len(self._offered) else None

    def offer(self, text: str, before_cursor: str) -> None:
        """Show the completions of a command, if the whole `text` is one, else of the file named at the end of its line
        up to the cursor.
        """
        offered = self._commands(text[1:]) if text.startswith("/") else []
        if not offered and _may_name_files(text):
            offered = _files(before_cursor)
        if offered and offered != self._offered:
            width = max(cell_len(f"{one.label} {one.key}".rstrip()) for one in offered)
            self.clear_options()
            self.add_options([_row(one, width) for one in offered])
            self._offered = offered
            self.highlighted = 0
        self.display = bool(offered)

    def _commands(self, typed: str) -> list[Completion]:
        name, separator, choice = typed.partition(" ")
        if not separator:
            return [self._command(one, typed) for one in matching(typed)] if typed == typed.strip() else []
        command, wanted = find(name), choice.strip()
        if command is None:
            return []
        if wanted and (command.name in FILES or (command.name in MAY_BE_PATHS and wanted.startswith(PATH_SIGNS))):
            return [
                Completion(f"/{command.name} {path}", "", f"/{typed}", f"/{command.name} {path}", "ignores")
                for path in paths_from(wanted)
            ]
        choices = self.choices[command.name]() if command.name in self.choices else ()
        return [
            Completion(f"/{command.name} {one}", text, f"/{typed}", f"/{command.name} {one}")
            for one, alias, text in choices
            if any(each.casefold().startswith(wanted.casefold()) for each in (one, alias))
        ]

    def _command(self, command: SlashCommand, typed: str) -> Completion:
        written = f"/{command.name} " if command.argument else f"/{command.name}"
        enter: Literal["sends", "writes"] = "writes" if command.needs_argument else "sends"
        same = KEYS.get(command.action)
        key = key_names(in_own_keys(same, keymap_of(self.app))) if same is not None else ""
        return Completion(command.usage, command.short or command.help, f"/{typed}", written, enter, key)


def _may_name_files(text: str) -> bool:
    """Return whether a text is a question, or a command that takes one."""
    command = find(text[1:].partition(" ")[0]) if text.startswith("/") else None
    return command is None or command.name in ATTACHES


def _files(before_cursor: str) -> list[Completion]:
    found = begun(before_cursor)
    if found is None:
        return []
    typed, path = found
    offered = [
        Completion(one, "", typed, named(one) + " " * (not one.endswith("/")), "writes") for one in paths_from(path)
    ]
    return [] if [one.is_typed for one in offered] == [True] else offered


def _row(one: Completion, width: int) -> Content:
    label = printable(one.label).ljust(width - cell_len(one.key))
    return Content.assemble((label, "bold"), one.key, " " * GAP, one.help)
