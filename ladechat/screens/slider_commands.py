"""The commands that the sliders send."""

import msgspec

from ladechat.protocol import Configure
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.sliders.sliders import ParameterSlider, SamplingSlider


def setting_of(slider: Slider) -> str:
    """Return the name of the setting of a slider."""
    match slider:
        case ParameterSlider():
            return slider.parameter.name
        case SamplingSlider():
            return slider.setting
    return ""


def command_of(move: Slider.Changed) -> Configure:
    """Return the command that applies the move of a slider."""
    if isinstance(move.slider, ParameterSlider):
        return Configure(parameters={move.slider.parameter.name: move.value})
    return msgspec.convert({setting_of(move.slider): move.slider.number}, Configure)
