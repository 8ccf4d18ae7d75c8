"""Settings other than the decoder and its parameters: model, system prompt, length of answers, and look."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from ladechat.palette import Look, Palette
from ladechat.preferences import SETTINGS
from ladechat.screens.chat.model_choice import ModelChoice
from ladechat.screens.chat.own_settings import OwnSettings
from ladechat.session.change import SWITCH, Adjustable, SettingRefused, given, shown
from ladechat.session.conversations.saved import shortened


class _LookOfApp(Protocol):
    """The parts of the app that control its look."""

    palette: Palette

    def action_switch_look(self) -> None: ...

    def action_toggle_panels(self) -> None: ...


class _Own(NamedTuple):
    """A setting of the app: its row in the list, and the function that sets it or raises `SettingRefused`."""

    listed: Adjustable
    take: Callable[[str], None]


class AllSettings(ModelChoice, OwnSettings):
    """Lists and sets the settings that the engine does not have."""

    def settings(self) -> list[Adjustable]:
        """Return all settings that can be changed now, with their values."""
        return [*super().settings(), *(own.listed for own in self._own())]

    def _set(self, name: str, value: str) -> None:
        own = next((one for one in self._own() if name.casefold() in (one.listed.name, one.listed.long_name)), None)
        if own is None:
            super()._set(name, value)
        else:
            own.take(value)

    def _own(self) -> Iterator[_Own]:
        conversation, look = self._session.conversation, cast(_LookOfApp, self.app).palette.look
        yield _own("model", conversation.model, self.action_model, "a name or a path")
        yield _own("system", shortened(conversation.system), self.action_system, "a text")
        yield _own("max_new_tokens", conversation.max_new_tokens, self._limit_answers)
        yield _own("theme", self.app.theme, self._take_theme, f"one of {', '.join(sorted(self.app.available_themes))}")
        yield _own("look", look.value, self._take_look)
        yield _own("panels", self.view.side.display, self._show_panels, "on or off")

    def _limit_answers(self, text: str) -> None:
        setting = SETTINGS["max_new_tokens"]
        try:
            self._session.conversation.max_new_tokens = msgspec.convert(text, setting.kind, strict=False)
        except msgspec.ValidationError:
            raise SettingRefused(f"max-new-tokens has to be {setting.wants}, {given(text)}.") from None

    def _take_look(self, text: str) -> None:
        app = cast(_LookOfApp, self.app)
        if text not in list(Look):
            raise SettingRefused(f"look has to be {SETTINGS['look'].wants}, {given(text)}.")
        if text != app.palette.look:
            app.action_switch_look()

    def _show_panels(self, text: str) -> None:
        wanted = SWITCH.get(text.casefold())
        if wanted is None:
            raise SettingRefused(f"panels has to be on or off, {given(text)}.")
        if wanted != self.view.side.display:
            cast(_LookOfApp, self.app).action_toggle_panels()


def _own(name: str, value: Any, take: Callable[[str], None], wants: str = "") -> _Own:
    """Return the row of a setting in the user's file, by its name there."""
    setting = SETTINGS[name]
    return _Own(Adjustable(name.replace("_", "-"), name, setting.help, wants or setting.wants, shown(value)), take)
