"""Theme and look of the app: as they were left, and kept when they change; and what of the settings does not hold."""

from dataclasses import replace
from typing import Any

from textual.reactive import reactive

from ladechat.contrast import readable_variables
from ladechat.palette import Look, Palette
from ladechat.preferences import SettingsFile, SettingsRefused
from ladechat.screens.app_on_terminal import AppOnTerminal


class AppWithLook(AppOnTerminal, inherit_bindings=False):
    """An app that looks as its user wants.

    Args:
        settings_file: theme and look as they were, and where changes of them are kept; None keeps none.
    """

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, settings_file: SettingsFile | None) -> None:
        super().__init__()
        self._settings_file = settings_file

    def get_css_variables(self) -> dict[str, str]:
        """The colours of the theme, those of text as far from their backgrounds as they have to be."""
        return readable_variables(super().get_css_variables())

    def begin_with_settings(self) -> None:
        """Take theme and look as they were left; and say in one message what of the settings does not hold."""
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
        """What of the settings does not hold, for the help: a heading, and the lines of the file with what is wrong."""
        if self._settings_file is None:
            return "", []
        problems = self._settings_file.problems
        rows = [(f"line {one.line}" if one.line else "the file", one.what) for one in problems]
        return f"Left out of {self._settings_file.path}", rows

    def follow_theme(self) -> None:
        """Have the palette fit the theme, and keep a theme that is chosen from now on."""
        self._match_theme()
        self.theme_changed_signal.subscribe(self, lambda _: self._theme_chosen())

    def action_switch_look(self) -> None:
        """A hue for each step, or the two colours of the method's demo figure."""
        look = Look.DEMO if self.palette.look is Look.HUES else Look.HUES
        self.palette = replace(self.palette, look=look)
        self.keep_settings(look=str(look))

    def keep_settings(self, **changes: Any) -> None:
        """Begin with these the next time."""
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
