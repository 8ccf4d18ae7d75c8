"""The form of all settings, with value, explanation and range; type another value and press Enter."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.events import ScreenResume
from textual.widgets import OptionList

from ladechat.keys import SETTINGS_KEYS
from ladechat.screens.lists.pick import PickScreen
from ladechat.session.change import SWITCH, Adjustable, SettingRefused
from ladechat.widgets.cells import fit, printable

NAME_CELLS = 20
VALUE_CELLS = 15
OTHER = {"on": "off", "off": "on"}


class SettingsScreen(PickScreen[None]):
    """Changes take effect at once, as those of the sliders.

    Args:
        read: returns the settings that can be changed now.
        change: sets the setting of a name to a value; it raises `SettingRefused` if it cannot.
        save: saves the settings for the next start.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(SETTINGS_KEYS)

    def __init__(
        self, read: Callable[[], list[Adjustable]], change: Callable[[str, str], None], save: Callable[[], None]
    ) -> None:
        super().__init__("Settings")
        self._read, self._change, self._save = read, change, save
        self._rows: list[Adjustable] = []
        self._explained: int | None = None  # the index of the setting that the field is for

    async def on_mount(self) -> None:
        self._show()
        self._explain()
        self._listed.set()

    @on(ScreenResume)
    def _show_anew(self) -> None:
        """Update the list, as another screen, such as the list of models, may have changed a setting."""
        if self._rows:
            self._show(self._list.highlighted or 0)

    def _show(self, place: int = 0) -> None:
        self._rows = self._read()
        self._list.clear_options()
        self._list.add_options([_row(one) for one in self._rows])
        self._list.highlighted = min(place, len(self._rows) - 1)

    @property
    def _marked(self) -> Adjustable:
        return self._rows[self._list.highlighted or 0]

    def action_move(self, how: str) -> None:
        """Highlight another setting; the text typed next is for that."""
        super().action_move(how)
        self._explain()

    @on(OptionList.OptionHighlighted)
    def _explain(self) -> None:
        """Show the highlighted setting's explanation and range above the list, where there is room for them."""
        if self._list.highlighted == self._explained:
            return
        typed_for_another = self._explained is not None
        self._explained = self._list.highlighted
        self._field.placeholder = printable(f"another value for {self._marked.name}")
        if typed_for_another:
            self._field.value = ""
        self._say(f"{self._marked.help} It may be {self._marked.wants}.")

    @on(OptionList.OptionSelected)
    def action_take(self) -> None:
        """Set the highlighted setting to the typed value; without one, toggle a switch."""
        marked, value = self._marked, self._field.value.strip()
        if not value and marked.value in SWITCH:
            value = OTHER[marked.value]
        try:
            self._change(marked.name, value)
        except SettingRefused as refused:
            self._say(str(refused))
        else:
            self._show()
            places = [place for place, one in enumerate(self._rows) if one.name == marked.name]
            self._list.highlighted, self._explained = (places or [0])[0], None
            self._explain()

    def action_save(self) -> None:
        self._save()


def _row(one: Adjustable) -> Content:
    name, value = fit(printable(one.name), NAME_CELLS), fit(printable(one.value), VALUE_CELLS)
    return Content.assemble((f"{name} ", "bold"), f"{value} · {printable(one.help)}")
