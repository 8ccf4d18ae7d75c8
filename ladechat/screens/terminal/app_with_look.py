"""The theme and look of the app, restored at the start and saved when they change, and the problems in the settings."""

from dataclasses import replace
from typing import Any

from textual.binding import Binding
from textual.reactive import reactive
from textual.widgets import TextArea

from ladechat.contrast import readable_variables
from ladechat.own_keys import own_keys
from ladechat.palette import Look, Palette
from ladechat.preferences import KEYS, SettingsFile, SettingsRefused
from ladechat.screens.terminal.app_on_terminal import AppOnTerminal
from ladechat.widgets.prompt.prompt import NOT_OF_THE_PROMPT, Prompt


class AppWithLook(AppOnTerminal, inherit_bindings=False):
    """An app with the user's theme and look.

    Args:
        settings_file: the saved theme and look, and the file for changes of them; None: nothing is saved.
    """

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, settings_file: SettingsFile | None) -> None:
        super().__init__()
        self._settings_file = settings_file
        if settings_file is not None:
            of_prompt = [one for one in (*TextArea.BINDINGS, *Prompt.BINDINGS) if isinstance(one, Binding)]
            taken = [one for one in of_prompt if one.action not in NOT_OF_THE_PROMPT]
            palette = Binding(self.COMMAND_PALETTE_BINDING, "command_palette", "palette")
            self.keymap, refused = own_keys(settings_file.preferences.keys, (*taken, palette))
            for name, why in refused.items():
                settings_file.leave_out((KEYS, name), why)

    def get_css_variables(self) -> dict[str, str]:
        """Return the colours of the theme, with text colours adjusted to the contrast that they need."""
        return readable_variables(super().get_css_variables())

    def begin_with_settings(self) -> None:
        """Restore the theme and look, and show one message about settings that are invalid."""
        if self._settings_file is None:
            return
        preferences, problems = self._settings_file.preferences, self._settings_file.problems
        if preferences.theme in self.available_themes:
            self.theme = preferences.theme
        elif preferences.theme is not None:
            themes = ", ".join(sorted(self.available_themes))
            self._settings_file.refuse("theme", f"there is no theme {preferences.theme!r}; there are {themes}.")
        self.palette = replace(self.palette, look=Look(preferences.look))
        if problems:
            many = f"{len(problems)} settings are left out: F1 lists them. They are in {self._settings_file.path}."
            self.notify(many if problems[1:] else problems[0].sentence, severity="warning", timeout=10)

    @property
    def left_out(self) -> tuple[str, list[tuple[str, str]]]:
        """The invalid settings, for the help: a heading, and the lines of the file with what is wrong."""
        if self._settings_file is None:
            return "", []
        problems = self._settings_file.problems
        rows = [(f"line {one.line}" if one.line else "the file", one.what) for one in problems]
        return f"Left out of {self._settings_file.path}", rows

    def follow_theme(self) -> None:
        """Match the palette to the theme, and save themes that are chosen from now on."""
        self._match_theme()
        self.theme_changed_signal.subscribe(self, lambda _: self._theme_chosen())

    def action_switch_look(self) -> None:
        """Switch between a hue for each step and the two colours of the method's demo figure."""
        look = Look.DEMO if self.palette.look is Look.HUES else Look.HUES
        self.palette = replace(self.palette, look=look)
        self.keep_settings(look=str(look))

    def keep_settings(self, **changes: Any) -> None:
        """Save these settings for the next start."""
        if self._settings_file is not None and self._settings_file.writable:
            try:
                self._settings_file.keep(changes)
            except SettingsRefused as refused:
                self.notify(str(refused), severity="warning")

    def _theme_chosen(self) -> None:
        self._match_theme()
        self.keep_settings(theme=self.theme)

    def _match_theme(self) -> None:
        self.palette = replace(Palette.detect(dark=self.current_theme.dark), look=self.palette.look)
