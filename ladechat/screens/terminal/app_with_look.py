"""The theme and look of the app, restored at the start and saved when they change, and the problems in the settings."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual import on
from textual.binding import Binding
from textual.command import Command, CommandPalette
from textual.reactive import reactive
from textual.theme import ThemeProvider
from textual.widgets import TextArea

from ladechat.contrast import readable_variables
from ladechat.own_keys import own_keys
from ladechat.palette import Depth, Look, Palette
from ladechat.preferences import KEYS, SettingsFile, SettingsRefused
from ladechat.screens.terminal.app_on_terminal import AppOnTerminal
from ladechat.widgets.prompt.prompt import NOT_OF_THE_PROMPT, Prompt


class CurrentThemeFirst(ThemeProvider):
    """The list of themes. When it opens, its first row is highlighted."""

    @property
    def commands(self) -> list[tuple[str, Callable[[], None]]]:
        """The names of the themes, each with a function that shows it."""
        return sorted(super().commands, key=lambda command: command[0] != self.app.theme)


class AppWithLook(AppOnTerminal, inherit_bindings=False):
    """An app with the user's theme and look; without a settings file, nothing is saved."""

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, settings_file: SettingsFile | None) -> None:
        super().__init__()
        self._settings_file = settings_file
        self._theme_before = ""  # while the list of themes is open
        if settings_file is not None:
            of_prompt = [one for one in (*TextArea.BINDINGS, *Prompt.BINDINGS) if isinstance(one, Binding)]
            taken = [one for one in of_prompt if one.action not in NOT_OF_THE_PROMPT]
            palette = Binding(self.COMMAND_PALETTE_BINDING, "command_palette", "palette")
            self.keymap, refused = own_keys(settings_file.preferences.keys, (*taken, palette))
            for name, why in refused.items():
                settings_file.leave_out((KEYS, name), why)

    def get_css_variables(self) -> dict[str, str]:
        """Return the colours of the theme, with text colours adjusted to the contrast that they need."""
        return readable_variables(super().get_css_variables(), Depth.detect(os.environ))

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
        """Match the palette to the theme, from now on."""
        self._match_theme()
        self.theme_changed_signal.subscribe(self, lambda _: self._match_theme())

    def save_theme(self, name: str) -> None:
        """Show the theme of this name, and save it for the next start."""
        self.theme = name
        self.save_settings(theme=name)

    def search_themes(self) -> None:
        """Show the list of themes; the highlighted one is shown at once, and saved if it is taken."""
        self._theme_before = self.theme
        self.push_screen(CommandPalette([CurrentThemeFirst], placeholder="Search for themes…", id="themes"))

    @on(CommandPalette.OptionHighlighted)
    def _preview_theme(self, event: CommandPalette.OptionHighlighted) -> None:
        if self._theme_before and isinstance(option := event.highlighted_event.option, Command):
            self.theme = option.hit.text or self.theme

    @on(CommandPalette.Closed)
    def _leave_themes(self, event: CommandPalette.Closed) -> None:
        if self._theme_before and event.option_selected:
            self.save_theme(self.theme)
        elif self._theme_before:
            self.theme = self._theme_before
        self._theme_before = ""

    def action_switch_look(self) -> None:
        """Switch between a hue for each step and the two colours of the method's demo figure."""
        look = Look.DEMO if self.palette.look is Look.HUES else Look.HUES
        self.palette = replace(self.palette, look=look)
        self.save_settings(look=str(look))

    def save_settings(self, **changes: Any) -> None:
        if self._settings_file is not None and self._settings_file.writable:
            try:
                self._settings_file.save(changes)
            except SettingsRefused as refused:
                self.notify(str(refused), severity="warning")

    def _match_theme(self) -> None:
        self.palette = replace(Palette.detect(dark=self.current_theme.dark), look=self.palette.look)
