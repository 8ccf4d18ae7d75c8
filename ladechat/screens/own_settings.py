"""What the user sets: the decoder and its numbers, how tokens are drawn, the theme; and what of it is kept."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
from textual import on
from textual.app import SystemCommand

from ladechat import catalog
from ladechat.preferences import DRAWING, SETTINGS, SettingsFile, SettingsRefused
from ladechat.protocol import Configure, DecoderInfo, Ready
from ladechat.screens.session_screen import SessionScreen
from ladechat.screens.settings import SettingsScreen
from ladechat.session.change import Adjustable, Refused, adjustable, change, decoder_named
from ladechat.widgets.slider import Slider
from ladechat.widgets.sliders import ParameterSlider, SamplingSlider

DECODER = "decoder"
NOT_KEPT = "Settings are not kept: ladechat was started with --no-save."


class OwnSettings(SessionScreen):
    """Sliders, commands and the form, all for the same settings.

    Args:
        settings_file: what keeps them; None keeps none.
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
                changed = slider.decoder if slider.decoder != self._session.wished.decoder else None
                self._configure(Configure(decoder=changed, parameters={slider.parameter.name: event.value}))
            case SamplingSlider() as slider:
                self._session.configure(msgspec.convert({slider.setting: slider.number}, Configure))

    def _configure(self, command: Configure) -> None:
        """Set numbers of the decoder; one that chooses by itself gives way to its like by hand, and that is said."""
        decoders, chosen = self.view.presenter.decoders, self._session.wished.decoder
        self._session.configure(command)
        if command.decoder is not None:
            info = decoders[command.decoder]
            self._before_by_hand = chosen
            labels = ", ".join(one.label for one in info.parameters if one.name in (command.parameters or {}))
            self.notify(f"{labels} by hand: {info.label} now. F3 goes back to {chosen}.")

    # --- the decoder --------------------------------------------------------------------------------------------------

    def _learn_limits(self, event: Ready) -> None:
        """What the model can be decoded with."""
        self._single_token = event.single_token

    def action_switch_decoder(self) -> None:
        """Back to the decoder that a slider has replaced; else plain decoding, or the one before it. From the next pass
        on.
        """
        decoders = self.view.presenter.decoders
        replaced = decoders.get(self._before_by_hand)
        plain = self._plain_decoder
        if replaced is not None and self._session.wished.decoder == replaced.by_hand:
            self._use_decoder(replaced)
        elif plain is not None and self._session.wished.decoder != plain.name:
            self._use_decoder(plain)
        else:
            self._use_decoder(decoders.get(self._before_plain) or next(iter(decoders.values())))

    @property
    def _plain_decoder(self) -> DecoderInfo | None:
        """The first of the engine's decoders that takes one token a pass."""
        return next((info for info in self.view.presenter.decoders.values() if not info.tree_attention), None)

    def _use_decoder(self, info: DecoderInfo) -> None:
        current = self._session.wished.decoder
        if self._single_token is not None and info.tree_attention:
            self._refuse(f"Plain decoding only: {self._single_token}")
            return
        if info is self._plain_decoder and current != info.name:
            self._before_plain = current
        self._before_by_hand = ""
        self._session.configure(Configure(decoder=info.name))

    def decoder_commands(self) -> Iterable[SystemCommand]:
        """For the command palette: every decoder."""
        for info in self.view.presenter.decoders.values():
            yield SystemCommand(f"Decoder: {info.label}", info.help, partial(self._use_decoder, info))

    def action_decoder(self, name: str) -> None:
        """The decoder of this name, or with this label, from the next pass on."""
        self.action_set(f"{DECODER} {name}")

    def _decoder_choices(self) -> Iterable[tuple[str, str]]:
        """What can stand behind /decoder: each name, and what the screen calls it."""
        return (
            (info.name, info.label if info.label != info.name else "") for info in self.view.presenter.decoders.values()
        )

    # --- numbers ------------------------------------------------------------------------------------------------------

    def action_set(self, text: str) -> None:
        """Set a number of the decoder, or one for drawing tokens: its name, and the number.

        Raises:
            Refused: it cannot be set so.
        """
        name, _, value = text.strip().partition(" ")
        self._set(name, value.strip())

    def _set(self, name: str, value: str) -> None:
        """Set what has this name.

        Raises:
            Refused: it cannot be set so.
        """
        decoders = self.view.presenter.decoders
        if name.casefold() == DECODER:
            self._use_decoder(decoder_named(value, decoders))
        else:
            self._configure(change(name, value, self._session.wished, decoders))

    def settings(self) -> list[Adjustable]:
        """All that can be set now, with its value."""
        presenter, wished = self.view.presenter, self._session.wished
        now = msgspec.structs.replace(wished, parameters={**presenter.parameters, **wished.parameters})
        names = ", ".join(presenter.decoders)
        decoder = Adjustable(DECODER, DECODER, SETTINGS[DECODER].help, f"one of {names}", wished.decoder)
        return [decoder, *adjustable(now, presenter.decoders)]

    def action_settings(self) -> None:
        """Show all that can be set."""
        self.app.push_screen(SettingsScreen(self.settings, self._set, self.action_save))

    # --- what is kept -------------------------------------------------------------------------------------------------

    def action_theme(self, name: str) -> None:
        """The colour theme of this name.

        Raises:
            Refused: there is none.
        """
        self._take_theme(name)

    def _take_theme(self, name: str) -> None:
        if name not in self.app.available_themes:
            themes = ", ".join(sorted(self.app.available_themes))
            raise Refused(f"There is no theme of that name; there are: {themes}.")
        self.app.theme = name

    def _theme_choices(self) -> Iterable[tuple[str, str]]:
        """What can stand behind /theme: the names of themes."""
        return ((name, "") for name in sorted(self.app.available_themes))

    def action_save(self) -> None:
        """Keep the model, the decoder, its numbers, the system prompt and the longest answer for the next time."""
        wished = self._session.wished
        if self._settings_file is None:
            self._refuse(NOT_KEPT)
            return
        changes = {name: getattr(wished, name) for name in ("parameters", *DRAWING)}
        conversation = self._session.conversation
        first = wished.decoder == catalog.first_decoder(conversation.model).name
        changes[DECODER] = None if first else wished.decoder  # another model may begin with another one
        try:
            own = {name: getattr(conversation, name) for name in ("model", "system", "max_new_tokens")}
            self._settings_file.keep({**changes, **own})
        except SettingsRefused as refused:
            self._refuse(str(refused), severity="error")
        else:
            conversation.usual_system = conversation.system
            self.notify(f"ladechat begins with these settings the next time: {self._settings_file.path}.")
