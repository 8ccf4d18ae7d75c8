"""What a user changes in answers: settings, by the names that are typed, the model, and the pace."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from ladechat import catalog
from ladechat.preferences import SAMPLING_NAMES, SETTINGS, Setting
from ladechat.protocol import Configure, DecoderInfo, Pace, Parameter, Settings, Value
from ladechat.server_address import is_server
from ladechat.session.conversations.saved import shortened

RATES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, None)
"""Steps per second, from slow to fast; None: as fast as possible."""
SLOW_MOTION = 4.0
ON_OFF = "on or off"
SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class SettingRefused(Exception):
    """The reason why a setting is not changed, and what to do, in a sentence."""


class ValueRefused(SettingRefused):
    """The same of a value: it says which ones `name` can have, and which was typed, or that none was."""

    def __init__(self, name: str, wants: str, text: str) -> None:
        super().__init__(f"{name} has to be {wants}, {f'not {shortened(text)!r}' if text else 'and none was given'}.")
        self.wants, self.text = wants, text


class Adjustable(NamedTuple):
    """A setting that can be changed now, by its name, as in /set W 15, or by the long one, as in /set window 15; the
    values that it can have, and its present value.
    """

    name: str
    long_name: str
    help: str
    wants: str
    value: str


def configured(settings: Settings, change: Configure) -> Settings:
    """Return the settings after a change."""
    given = {name: getattr(change, name) for name in change.__struct_fields__}
    given["parameters"] = {**settings.parameters, **(change.parameters or {})}
    return msgspec.structs.replace(settings, **{name: value for name, value in given.items() if value is not None})


def owner_of(settings: Settings, decoders: Mapping[str, DecoderInfo]) -> DecoderInfo | None:
    """Return the decoder whose parameters can be set: the chosen one, or the manual form of an automatic one."""
    info = decoders.get(settings.decoder)
    return decoders.get(info.by_hand, info) if info is not None and info.by_hand is not None else info


def adjustable(settings: Settings, decoders: Mapping[str, DecoderInfo]) -> Iterator[Adjustable]:
    """Yield all settings that `change` can set: the decoder's parameters, then the sampling settings."""
    owner = owner_of(settings, decoders)
    for one in owner.parameters if owner is not None else ():
        if one.live:
            value = settings.parameters.get(one.name, one.default)
            yield Adjustable(one.label, one.name, one.help, _wants(one), shown(value))
    for name in SAMPLING_NAMES:
        setting, value = SETTINGS[name], getattr(settings, name)
        yield Adjustable(name.replace("_", "-"), name, setting.help, wanted_of(setting), shown(value))


def wanted_of(setting: Setting) -> str:
    """Return what may be typed for a setting."""
    return ON_OFF if setting.plain is bool else setting.wants


def shown(value: Value | float | str | None) -> str:
    """Format a value for the list of settings."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"


def _wants(parameter: Parameter) -> str:
    return ON_OFF if isinstance(parameter.default, bool) else f"from {parameter.least} to {parameter.most}"


def change(name: str, text: str, settings: Settings, decoders: Mapping[str, DecoderInfo]) -> Configure:
    """Return the command that sets the setting of this name to the value that was typed.

    Raises:
        SettingRefused: there is no setting of this name, or it cannot have this value.
    """
    field = _joined(name)
    if field in SAMPLING_NAMES:
        return msgspec.convert({field: typed(field, text)}, Configure)
    owner = owner_of(settings, decoders)
    for one in owner.parameters if owner is not None else ():
        if owner is not None and one.live and field in (one.name, one.label.casefold()):
            decoder = owner.name if owner.name != settings.decoder else None
            return Configure(decoder=decoder, parameters={one.name: _parameter(one, text)})
    if (missing := missing_here(name, settings, decoders)) is not None:
        raise SettingRefused(missing)
    offered = ", ".join(one.name for one in adjustable(settings, decoders))
    raise SettingRefused(f"Nothing that is called {shortened(name)!r} can be set now; these can: {offered}.")


def missing_here(name: str, settings: Settings, decoders: Mapping[str, DecoderInfo]) -> str | None:
    """Return why a setting that only other decoders have cannot be set now, and what can; None if no decoder has it."""
    owner, field = owner_of(settings, decoders), _joined(name)
    every = (one for info in decoders.values() for one in info.parameters)
    meant = next((one for one in every if one.live and field in (one.name, one.label.casefold())), None)
    if owner is None or meant is None:
        return None
    own = ", ".join(one.label for one in owner.parameters if one.live) or "none"
    return f"{owner.label} has no setting {meant.label}; it has {own}."


def decoder_named(name: str, decoders: Mapping[str, DecoderInfo]) -> DecoderInfo:
    """Return the decoder with this name or label.

    Raises:
        SettingRefused: there is none.
    """
    wanted = _joined(name)
    found = next((one for one in decoders.values() if wanted in (one.name, _joined(one.label))), None)
    if found is None:
        raise SettingRefused(f"There is no decoder {shortened(name)!r}; there are {', '.join(decoders)}.")
    return found


def _joined(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def typed(name: str, text: str) -> Any:
    """Return the value that was typed for a setting of the user's file.

    Raises:
        SettingRefused: it cannot have this value.
    """
    setting = SETTINGS[name]
    try:
        written = text.casefold()
        value = msgspec.convert(SWITCH.get(written) if setting.plain is bool else written, setting.kind, strict=False)
    except msgspec.ValidationError:
        value = None
    if value is None:
        raise ValueRefused(name.replace("_", "-"), wanted_of(setting), text)
    return value


def _parameter(parameter: Parameter, text: str) -> Value:
    value: Value | None = SWITCH.get(text.casefold())
    if not isinstance(parameter.default, bool):
        try:
            value = int(text)
        except ValueError:
            value = None
    if value is None or catalog.problem(parameter, value) is not None:
        raise ValueRefused(parameter.label, _wants(parameter), text)
    return value


def settings_for(model: str, requested: Settings, present: str) -> Settings:
    """Return the settings with which a model begins in place of the present one: with its own default decoder if the
    requested decoder is the default of the present model, or does not fit every model, as one whose drafter was
    trained for it, or if either of them is on a server.
    """
    info = catalog.DECODERS.get(requested.decoder)
    if (
        info is None
        or is_server(model)
        or info.needs is not None
        or info.least_layers
        or info is catalog.first_decoder(present)
    ):
        return msgspec.structs.replace(requested, decoder=catalog.first_decoder(model).name)
    return requested


# --- the pace ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ViewerPace:
    """The requested steps per second, and whether they are paused; the rate outlasts a pause.

    The engine itself follows it, so that what is seen is what is happening.
    """

    rate: float | None = None
    paused: bool = False

    def faster(self, places: int) -> "ViewerPace":
        """Return the pace that is `places` further in the table of rates; slower if negative."""
        place = min(max(RATES.index(self.rate) + places, 0), len(RATES) - 1)
        return replace(self, rate=RATES[place])

    def slow_motion(self) -> "ViewerPace":
        """Return the pace of slow motion, four steps per second; in slow motion, the pace as fast as possible."""
        return replace(self, rate=None if self.in_slow_motion else SLOW_MOTION)

    @property
    def in_slow_motion(self) -> bool:
        """Whether the rate is that of slow motion."""
        return self.rate == SLOW_MOTION

    def pause(self, on: bool) -> "ViewerPace":
        """Return the same pace, paused or not."""
        return replace(self, paused=on)

    def command(self) -> Pace:
        """Return the command that sets this pace."""
        return Pace(steps_per_second=0.0 if self.paused else self.rate)
