"""The user's settings: the decoder and its parameters, sampling, and the theme; and how they are saved."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
from textual import on
from textual.app import SystemCommand

from ladechat import catalog
from ladechat.preferences import DRAWING, SETTINGS, SettingsFile, SettingsRefused
from ladechat.protocol import Configure, DecoderInfo, Ready
from ladechat.screens.chat.session_screen import SessionScreen
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.session.change import Adjustable, SettingRefused, adjustable, change, decoder_named
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.sliders.sliders import ParameterSlider, SamplingSlider

DECODER = "decoder"
NOT_SAVED = "Settings are not kept: ladechat was started with --no-save."


class OwnSettings(SessionScreen):
    """Changes the same settings by sliders, commands and the form.

    Args:
        settings_file: saves the settings; None: nothing is saved.
    """

    def __init__(self, *args: Any, settings_file: SettingsFile | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings_file = settings_file
        self._single_token: str | None = None
        self._before_plain = ""
        self._before_by_hand = ""
        self._prompt.commands.choices = {DECODER: self._decoder_choices, "theme": self._theme_choices}

    @on(Slider.Changed)
    def _slider_moved(self, event: Slider.Changed) -> None:
        match event.slider:
            case ParameterSlider() as slider:
                changed = slider.decoder if slider.decoder != self._session.requested.decoder else None
                self._configure(Configure(decoder=changed, parameters={slider.parameter.name: event.value}))
            case SamplingSlider() as slider:
                self._session.configure(msgspec.convert({slider.setting: slider.number}, Configure))

    def _configure(self, command: Configure) -> None:
        """Set parameters of the decoder; an automatic decoder is replaced by its manual counterpart, with a message."""
        decoders, chosen = self.view.presenter.decoders, self._session.requested.decoder
        self._session.configure(command)
        if command.decoder is not None:
            info = decoders[command.decoder]
            self._before_by_hand = chosen
            labels = ", ".join(one.label for one in info.parameters if one.name in (command.parameters or {}))
            self.notify(f"{labels} by hand: {info.label} now. F3 goes back to {chosen}.")

    # --- the decoder --------------------------------------------------------------------------------------------------

    def _learn_limits(self, event: Ready) -> None:
        """Remember why the model can only be decoded one token at a time, if so."""
        self._single_token = event.single_token

    def action_switch_decoder(self) -> None:
        """Return to the decoder that a slider has replaced; else switch between plain decoding and the decoder before
        it. It takes effect at the next pass.
        """
        decoders = self.view.presenter.decoders
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
        return next((info for info in self.view.presenter.decoders.values() if not info.tree_attention), None)

    def _use_decoder(self, info: DecoderInfo) -> None:
        current = self._session.requested.decoder
        if self._single_token is not None and info.tree_attention:
            self._refuse(f"Plain decoding only: {self._single_token}")
            return
        if info is self._plain_decoder and current != info.name:
            self._before_plain = current
        self._before_by_hand = ""
        self._session.configure(Configure(decoder=info.name))

    def decoder_commands(self) -> Iterable[SystemCommand]:
        """Yield the commands of the palette for every decoder."""
        for info in self.view.presenter.decoders.values():
            yield SystemCommand(f"Decoder: {info.label}", info.help, partial(self._use_decoder, info))

    def action_decoder(self, name: str) -> None:
        """Use the decoder of this name or label from the next pass on."""
        self.action_set(f"{DECODER} {name}")

    def _decoder_choices(self) -> Iterable[tuple[str, str]]:
        """Return the completions of /decoder: each name with its label."""
        return (
            (info.name, info.label if info.label != info.name else "") for info in self.view.presenter.decoders.values()
        )

    # --- values -------------------------------------------------------------------------------------------------------

    def action_set(self, text: str) -> None:
        """Set a parameter of the decoder or a sampling setting: its name, then its value.

        Raises:
            SettingRefused: there is no such setting, or it cannot have this value.
        """
        name, _, value = text.strip().partition(" ")
        self._set(name, value.strip())

    def _set(self, name: str, value: str) -> None:
        """Set the setting of this name.

        Raises:
            SettingRefused: there is no such setting, or it cannot have this value.
        """
        decoders = self.view.presenter.decoders
        if name.casefold() == DECODER:
            self._use_decoder(decoder_named(value, decoders))
        else:
            self._configure(change(name, value, self._session.requested, decoders))

    def settings(self) -> list[Adjustable]:
        """Return all settings that can be changed now, with their values."""
        presenter, requested = self.view.presenter, self._session.requested
        now = msgspec.structs.replace(requested, parameters={**presenter.parameters, **requested.parameters})
        names = ", ".join(presenter.decoders)
        decoder = Adjustable(DECODER, DECODER, SETTINGS[DECODER].help, f"one of {names}", requested.decoder)
        return [decoder, *adjustable(now, presenter.decoders)]

    def action_settings(self) -> None:
        """Show all settings."""
        self.app.push_screen(SettingsScreen(self.settings, self._set, self.action_save))

    # --- saved settings -----------------------------------------------------------------------------------------------

    def action_theme(self, name: str) -> None:
        """Use the colour theme of this name.

        Raises:
            SettingRefused: there is none.
        """
        self._take_theme(name)

    def _take_theme(self, name: str) -> None:
        if name not in self.app.available_themes:
            themes = ", ".join(sorted(self.app.available_themes))
            raise SettingRefused(f"There is no theme of that name; there are: {themes}.")
        self.app.theme = name

    def _theme_choices(self) -> Iterable[tuple[str, str]]:
        """Return the completions of /theme: the names of themes."""
        return ((name, "") for name in sorted(self.app.available_themes))

    def action_save(self) -> None:
        """Save the model, the decoder, its parameters, the system prompt and the longest answer for the next start."""
        requested = self._session.requested
        if self._settings_file is None:
            self._refuse(NOT_SAVED)
            return
        changes = {name: getattr(requested, name) for name in ("parameters", *DRAWING)}
        conversation = self._session.conversation
        first = requested.decoder == catalog.first_decoder(conversation.model).name
        changes[DECODER] = None if first else requested.decoder  # another model may have another default
        try:
            own = {name: getattr(conversation, name) for name in ("model", "system", "max_new_tokens")}
            self._settings_file.keep({**changes, **own})
        except SettingsRefused as refused:
            self._refuse(str(refused), severity="error")
        else:
            conversation.usual_system = conversation.system
            self.notify(f"ladechat begins with these settings the next time: {self._settings_file.path}.")
