"""The settings in the chat: the decoder, its parameters and sampling, the model and its texts, and the look."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import msgspec
from textual.app import SystemCommand

from ladechat import catalog
from ladechat.palette import Look
from ladechat.preferences import DRAWING, SETTINGS, SettingsFile, SettingsRefused
from ladechat.protocol import Configure, DecoderInfo
from ladechat.screens.chat.context import ChatContext
from ladechat.screens.chat.model_choice import ModelChoice
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.slider_commands import command_of
from ladechat.screens.terminal.app_with_look import AppWithLook
from ladechat.session.change import (
    SWITCH,
    Adjustable,
    SettingRefused,
    adjustable,
    change,
    decoder_named,
    given,
    shown,
)
from ladechat.session.conversations.saved import shortened
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.sliders.sliders import ParameterSlider

DECODER = "decoder"
NOT_SAVED = "Settings are not kept: ladechat was started with --no-save."

_Own = tuple[Adjustable, Callable[[str], None]]
"""A setting that the engine does not have: its row in the list, and the function that sets it."""


class ChatSettings:
    """Changes the same settings by sliders, commands and the form, and saves them.

    Args:
        chat: the session and its view.
        models: sets the model and the system prompt.
        settings_file: saves the settings; None: nothing is saved.
    """

    def __init__(self, chat: ChatContext, models: ModelChoice, settings_file: SettingsFile | None) -> None:
        self._chat, self._session, self._models, self._settings_file = chat, chat.session, models, settings_file
        self.single_token: str | None = None
        """Why the model can only be decoded one token at a time; None if it can be decoded otherwise."""
        self._before_plain = ""
        self._before_by_hand = ""
        chat.prompt.commands.choices = {DECODER: self._decoder_choices, "theme": self._theme_choices}

    @property
    def _decoders(self) -> Mapping[str, DecoderInfo]:
        return self._chat.view.presenter.decoders

    @property
    def _app(self) -> AppWithLook:
        return cast(AppWithLook, self._chat.screen.app)

    # --- the decoder --------------------------------------------------------------------------------------------------

    def action_switch_decoder(self) -> None:
        """Return to the decoder that a slider has replaced; else switch between plain decoding and the decoder before
        it. It takes effect at the next pass.
        """
        decoders = self._decoders
        if len(decoders) == 1:
            self._chat.refuse(next(iter(decoders.values())).help)
            return
        replaced = decoders.get(self._before_by_hand)
        plain = self._plain_decoder
        if replaced is not None and self._session.requested.decoder == replaced.by_hand:
            self._use_decoder(replaced)
        elif plain is not None and self._session.requested.decoder != plain.name:
            self._use_decoder(plain)
        else:
            self._use_decoder(decoders.get(self._before_plain) or next(iter(decoders.values())))

    @property
    def _plain_decoder(self) -> DecoderInfo | None:
        """The first of the engine's decoders that generates one token per pass."""
        return next((info for info in self._decoders.values() if not info.tree_attention), None)

    def _use_decoder(self, info: DecoderInfo) -> None:
        current = self._session.requested.decoder
        if self.single_token is not None and info.tree_attention:
            self._chat.refuse(f"Plain decoding only: {self.single_token}")
            return
        if info is self._plain_decoder and current != info.name:
            self._before_plain = current
        self._before_by_hand = ""
        self._session.configure(Configure(decoder=info.name))

    def decoder_commands(self) -> Iterable[SystemCommand]:
        """Yield the commands of the palette for every decoder."""
        for info in self._decoders.values():
            yield SystemCommand(f"Decoder: {info.label}", info.help, partial(self._use_decoder, info))

    def _decoder_choices(self) -> Iterable[tuple[str, str, str]]:
        """Yield the completions of /decoder: each name with its label, and how it guesses."""
        for info in self._decoders.values():
            as_named = info.label.casefold() == info.name.replace("_", " ")
            says = info.help if as_named else f"{info.label}: {info.help}"
            yield info.name, info.label, says

    def move(self, moved: Slider.Changed) -> None:
        """Apply the value to which the user has moved a slider; another decoder's slider chooses that decoder."""
        slider, command = moved.slider, command_of(moved)
        if isinstance(slider, ParameterSlider) and slider.decoder != self._session.requested.decoder:
            command = msgspec.structs.replace(command, decoder=slider.decoder)
        self._configure(command)

    def _configure(self, command: Configure) -> None:
        """Send the change; if it chooses a decoder, remember the one before, and say how to return to it."""
        chosen = self._session.requested.decoder
        self._session.configure(command)
        if command.decoder is not None:
            info = self._decoders[command.decoder]
            self._before_by_hand = chosen
            labels = ", ".join(one.label for one in info.parameters if one.name in (command.parameters or {}))
            self._chat.notify(f"{labels} by hand: {info.label} now. F3 goes back to {chosen}.")

    # --- values by name -----------------------------------------------------------------------------------------------

    def action_decoder(self, name: str) -> None:
        """Use the decoder of this name or label from the next pass on."""
        self.set(DECODER, name)

    def action_theme(self, name: str) -> None:
        """Use the colour theme of this name; without one, show the list of them.

        Raises:
            SettingRefused: there is none.
        """
        if not name:
            self._app.search_themes()
        elif name not in self._app.available_themes:
            themes = ", ".join(sorted(self._app.available_themes))
            raise SettingRefused(f"There is no theme of that name; there are: {themes}.")
        else:
            self._app.keep_theme(name)

    def action_set(self, text: str) -> None:
        """Set a setting: its name, then its value, as typed after /set.

        Raises:
            SettingRefused: there is no such setting, or it cannot have this value.
        """
        name, _, value = text.strip().partition(" ")
        self.set(name, value.strip())

    def set(self, name: str, value: str) -> None:
        """Set the setting of this name.

        Raises:
            SettingRefused: there is no such setting, or it cannot have this value.
        """
        take = next((take for own, take in self._own() if name.casefold() in (own.name, own.long_name)), None)
        if take is not None:
            take(value)
        elif name.casefold() == DECODER:
            self._use_decoder(decoder_named(value, self._decoders))
        else:
            self._configure(change(name, value, self._session.requested, self._decoders))

    def has(self, name: str) -> bool:
        """Return whether there is a setting of this name now."""
        return any(name.casefold() in (one.name.casefold(), one.long_name) for one in self.listed())

    def listed(self) -> list[Adjustable]:
        """Return all settings that can be changed now, with their values."""
        requested = self._session.requested
        parameters = {**self._chat.view.presenter.parameters, **requested.parameters}
        now = msgspec.structs.replace(requested, parameters=parameters)
        names = ", ".join(self._decoders)
        decoder = Adjustable(DECODER, DECODER, SETTINGS[DECODER].help, f"one of {names}", requested.decoder)
        return [decoder, *adjustable(now, self._decoders), *(own for own, _ in self._own())]

    def action_settings(self) -> None:
        """Show all settings."""
        self._chat.screen.app.push_screen(SettingsScreen(self.listed, self.set, self.action_save))

    # --- settings that the engine does not have -----------------------------------------------------------------------

    def _own(self) -> Iterator[_Own]:
        conversation, app = self._session.conversation, self._app
        yield _own("model", conversation.model, self._models.action_model, "a name or a path")
        yield _own("system", shortened(conversation.system), self._models.action_system, "a text")
        yield _own("max_new_tokens", conversation.max_new_tokens, self._limit_answers)
        yield _own("theme", app.theme, self.action_theme, f"one of {', '.join(sorted(app.available_themes))}")
        yield _own("look", app.palette.look.value, self._take_look)
        yield _own("panels", self._chat.view.side.display, self._show_panels, "on or off")

    def _limit_answers(self, text: str) -> None:
        setting = SETTINGS["max_new_tokens"]
        try:
            self._session.conversation.max_new_tokens = msgspec.convert(text, setting.kind, strict=False)
        except msgspec.ValidationError:
            raise SettingRefused(f"max-new-tokens has to be {setting.wants}, {given(text)}.") from None
        self._session.changed()

    def _theme_choices(self) -> Iterable[tuple[str, str, str]]:
        """Return the completions of /theme: the names of themes."""
        return ((name, "", SETTINGS["theme"].help) for name in sorted(self._app.available_themes))

    def _take_look(self, text: str) -> None:
        if text not in list(Look):
            raise SettingRefused(f"look has to be {SETTINGS['look'].wants}, {given(text)}.")
        if text != self._app.palette.look:
            self._app.action_switch_look()

    def _show_panels(self, text: str) -> None:
        wanted = SWITCH.get(text.casefold())
        if wanted is None:
            raise SettingRefused(f"panels has to be on or off, {given(text)}.")
        if wanted != self._chat.view.side.display:
            self._chat.view.toggle_panels()
            self._app.keep_settings(panels=wanted)

    def action_save(self) -> None:
        """Save the model, the decoder, its parameters, the system prompt and the longest answer for the next start."""
        requested = self._session.requested
        if self._settings_file is None:
            self._chat.refuse(NOT_SAVED)
            return
        changes = {name: getattr(requested, name) for name in ("parameters", *DRAWING)}
        conversation = self._session.conversation
        first = not self._chat.engine_command and requested.decoder == catalog.first_decoder(conversation.model).name
        changes[DECODER] = None if first else requested.decoder  # another model may have another default
        try:
            own = {name: getattr(conversation, name) for name in ("system", "max_new_tokens")}
            self._settings_file.keep({**changes, **own, **self._engine})
        except SettingsRefused as refused:
            self._chat.refuse(str(refused), severity="error")
        else:
            conversation.usual_system = conversation.system
            said = f"ladechat begins with these settings the next time: {self._settings_file.path}."
            self._chat.notify(said)

    @property
    def _engine(self) -> dict[str, str | None]:
        """What chooses the engine in the file: the user's command, or else the model."""
        command = self._chat.engine_command
        return {"engine": command} if command else {"engine": None, "model": self._session.conversation.model}


def _own(name: str, value: Any, take: Callable[[str], None], wants: str = "") -> _Own:
    """Return the row of a setting in the user's file, by its name there."""
    setting = SETTINGS[name]
    return Adjustable(name.replace("_", "-"), name, setting.help, wants or setting.wants, shown(value)), take
