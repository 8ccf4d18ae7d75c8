"""The settings in the chat: the decoder, its parameters and sampling, the model and its texts, and the look."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import msgspec
from msgspec.structs import asdict
from textual.app import SystemCommand

from ladechat import catalog
from ladechat.engine_options import found_anywhere
from ladechat.preferences import SAMPLING_NAMES, SETTINGS, Preferences, SettingsFile, SettingsRefused
from ladechat.protocol import NO_SWITCH, Configure, DecoderInfo, Ready, ThinkingSwitch
from ladechat.screens.chat.context import ChatContext
from ladechat.screens.chat.model_choice import ModelChoice
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.terminal.app_with_look import AppWithLook
from ladechat.session.change import (
    Adjustable,
    SettingRefused,
    adjustable,
    change,
    decoder_named,
    shown,
    typed,
    wanted_of,
)
from ladechat.session.conversations.saved import shortened
from ladechat.session.engine import LOADED
from ladechat.widgets.formatting import name_of
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.sliders.sliders import ParameterSlider, command_of

DECODER, THINKING = "decoder", "thinking"
NO_PRESETS = "There is no preset yet: /save NAME makes one of this model, system prompt and settings."

_OwnSetting = tuple[Adjustable, Callable[[str], None]]
"""A setting that the engine does not have: its row in the list, and the function that sets it."""


class ChatSettings:
    """Changes the same settings by sliders, commands and the form, and saves them, if there is a file for them."""

    def __init__(self, chat: ChatContext, models: ModelChoice, settings_file: SettingsFile | None) -> None:
        self._chat, self._session, self._models = chat, chat.session, models
        self._file = settings_file or SettingsFile(writable=False)
        self._preset, self._taken = self._file.begun_with, self._current
        self._coming: tuple[str, Preferences] | None = None
        """A preset with its model, once that has loaded."""
        self.single_token: str | None = None
        """Why the model can only be decoded one token at a time; None if it can be decoded otherwise."""
        self._has_switch = False
        self._before_plain = ""  # the decoder that plain decoding replaced
        self._before_by_hand = ""  # the decoder that a slider replaced
        chat.prompt.commands.choices = {DECODER: self._decoder_choices, "theme": self._theme_choices}
        chat.prompt.commands.choices |= dict.fromkeys(("preset", "remove-preset"), self._presets)

    @property
    def thinking(self) -> ThinkingSwitch:
        """Whether the model should think first; "auto": as it does by itself, or if it has no switch for that."""
        return "auto" if self._lacks_switch else self._session.requested.thinking

    @property
    def _lacks_switch(self) -> bool:
        """Whether the model is known to have no switch for thinking: only once it has loaded."""
        return self._session.state in LOADED and not self._has_switch

    @property
    def _decoders(self) -> Mapping[str, DecoderInfo]:
        return self._chat.view.presenter.now.decoders

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
            self._app.save_theme(name)

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
        elif name.casefold() == THINKING and self._lacks_switch and value.casefold() != "auto":
            raise SettingRefused(NO_SWITCH)
        else:
            self._configure(change(name, value, self._session.requested, self._decoders))

    def has(self, name: str) -> bool:
        return any(name.casefold() in (one.name.casefold(), one.long_name) for one in self.listed())

    def listed(self) -> list[Adjustable]:
        """Return all settings that can be changed now, with their values."""
        requested = self._session.requested
        parameters = {**self._chat.view.presenter.now.parameters, **requested.parameters}
        now = msgspec.structs.replace(requested, parameters=parameters)
        names = ", ".join(self._decoders)
        decoder = Adjustable(DECODER, DECODER, SETTINGS[DECODER].help, f"one of {names}", requested.decoder)
        return [decoder, *adjustable(now, self._decoders), *(own for own, _ in self._own())]

    def action_settings(self) -> None:
        self._chat.screen.app.push_screen(SettingsScreen(self.listed, self.set, self.action_save))

    # --- settings that the engine does not have -----------------------------------------------------------------------

    def _own(self) -> Iterator[_OwnSetting]:
        conversation, app = self._session.conversation, self._app
        yield _row("model", conversation.model, self._models.action_model, "a name or a path")
        yield _row("system", shortened(conversation.system), self._models.action_system, "a text")
        yield _row("max_new_tokens", conversation.max_new_tokens, self._limit_answers)
        yield _row("theme", app.theme, self.action_theme, f"one of {', '.join(sorted(app.available_themes))}")
        yield _row("look", app.palette.look.value, self._take_look)
        yield _row("panels", self._chat.view.side.display, self._show_panels)

    def _limit_answers(self, text: str) -> None:
        self._session.conversation.max_new_tokens = typed("max_new_tokens", text)
        self._session.changed()

    def _theme_choices(self) -> Iterable[tuple[str, str, str]]:
        return ((name, "", SETTINGS["theme"].help) for name in sorted(self._app.available_themes))

    def _take_look(self, text: str) -> None:
        if typed("look", text) != self._app.palette.look:
            self._app.action_switch_look()

    def _show_panels(self, text: str) -> None:
        wanted = typed("panels", text)
        if wanted != self._chat.view.side.display:
            self._chat.view.side.display = wanted
            self._app.save_settings(panels=wanted)

    # --- what is saved ------------------------------------------------------------------------------------------------

    @property
    def _current(self) -> dict[str, Any]:
        """The model, its texts and all settings, by their names in the settings file."""
        texts = {name: getattr(self._session.conversation, name) for name in ("model", "system", "max_new_tokens")}
        return asdict(self._session.requested) | texts

    def action_save(self, preset: str = "") -> None:
        """Save the model, the decoder, its parameters, the system prompt and the longest answer: for the next start, or
        as the preset of this name.
        """
        conversation, command, changes = self._session.conversation, self._chat.engine_command, self._current
        decoder, file = changes[DECODER], self._file
        if command:
            del changes["model"]
        try:
            if preset:
                file, known = self._file.preset(preset, new=True), decoder in catalog.DECODERS
                parameters = catalog.resolved(decoder, changes["parameters"]) if known else {}
                file.save(changes | {DECODER: decoder if known else None, "parameters": parameters})
                said = f"Saved: /preset {preset} takes this again, and ladechat --preset {preset} begins with it."
                self._preset, self._taken = preset, self._current
            else:
                first = not command and decoder == catalog.first_decoder(conversation.model).name
                file.save(changes | {"engine": command or None, DECODER: None if first else decoder})  # models differ
                said = f"ladechat begins with these settings the next time: {file.path}."
                conversation.usual_system = conversation.system
        except SettingsRefused as refused:
            self._chat.refuse(str(refused), severity="error")
        else:
            self._chat.notify(said)
            self._session.changed()

    @property
    def preset(self) -> str:
        """The preset that was taken last, and whether something was changed after that; "" without any."""
        return f"{self._preset}, changed" if self._preset and self._taken != self._current else self._preset

    def action_preset(self, name: str = "") -> None:
        """Take the model, system prompt and settings of a preset; without a name, list all presets.

        Raises:
            SettingsRefused: it cannot be taken.
            AddressRefused: its model begins like the address of a server, and is none.
        """
        if name:
            preset = self._file.preset(name)
            self._choose(name, {key: getattr(preset.preferences, key) for key in preset.names})
        elif self._file.presets:
            self._chat.prompt.offer_command("/preset ")
        else:
            self._chat.notify(NO_PRESETS)

    def action_as_before(self) -> None:
        """Take the model, system prompt and settings of the last answer."""
        conversation = self._session.conversation
        last = conversation.exchanges[-1] if conversation.begun else None
        if last is None or last.settings is None:
            raise SettingRefused("It is not known with which settings the last answer was made.")
        texts = {"model": last.model, "system": last.system or "", "max_new_tokens": conversation.max_new_tokens}
        self._choose("", asdict(last.settings) | texts)

    def _choose(self, name: str, own: dict[str, Any]) -> None:
        """Take these settings as a preset of this name, and those of the file that are not among them."""
        present = self._session.conversation.model
        model = found_anywhere(own["model"]) if "model" in own else present
        self._coming = name, msgspec.structs.replace(self._file.preferences, **{**own, "model": model})
        if model == present:
            self._take(*self._coming)
        else:
            self._models.action_model(model)

    def loaded(self, event: Ready) -> None:
        """Take the preset that has waited for its model."""
        self.single_token, self._has_switch = event.single_token, event.thinking
        if self._coming is not None and self._coming[1].model == self._session.conversation.model:
            self._take(*self._coming)

    def _take(self, name: str, wanted: Preferences) -> None:
        conversation = self._session.conversation
        first = catalog.first_decoder(conversation.model)
        decoder = first.name if first is catalog.SERVER else wanted.decoder or first.name
        sampling = {name: getattr(wanted, name) for name in SAMPLING_NAMES}
        self._session.configure(Configure(decoder=decoder, parameters=wanted.parameters, **sampling))
        conversation.max_new_tokens, conversation.usual_system = wanted.max_new_tokens, wanted.system
        if wanted.system != conversation.system:
            self._session.instruct(wanted.system)
        self._preset, self._taken, self._coming = name, self._current, None
        self._session.changed()

    def action_remove_preset(self, name: str) -> None:
        """Remove the preset of this name, and say where its file is."""
        path = self._file.preset(name, new=True).path
        try:
            removed = path.rename(path.with_suffix(".removed"))
        except FileNotFoundError:
            raise SettingRefused(f"There is no preset {name} to remove.") from None
        except OSError as error:
            raise SettingRefused(f"The preset {name} cannot be removed: {error.strerror or error}.") from error
        self._chat.notify(f"Removed; what it had is still in {removed}.")

    def _presets(self) -> Iterator[tuple[str, str, str]]:
        """Yield the completions of /preset: each name, and what it has."""
        for name in self._file.presets:
            file = self._file.preset(name, new=True)
            has, wrong = file.preferences, [problem.what for problem in file.problems]
            parts = wrong[:1] or (name_of(has.model), has.decoder, shortened(has.system))
            yield name, "", " · ".join(part for part in parts if part)


def _row(name: str, value: Any, take: Callable[[str], None], wants: str = "") -> _OwnSetting:
    """Return the row of a setting in the user's file, by its name there."""
    setting = SETTINGS[name]
    return Adjustable(name.replace("_", "-"), name, setting.help, wants or wanted_of(setting), shown(value)), take
