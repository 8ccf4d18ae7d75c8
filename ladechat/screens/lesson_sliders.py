"""The sliders of a lesson: which setting each is of, and what its move asks of the engine."""

import msgspec

from ladechat.protocol import Configure
from ladechat.widgets.slider import Slider
from ladechat.widgets.sliders import ParameterSlider, SamplingSlider


def setting_of(slider: Slider) -> str:
    """The name of the setting that a slider is of."""
    match slider:
        case ParameterSlider():
            return slider.parameter.name
        case SamplingSlider():
            return slider.setting
    return ""


def change_by(move: Slider.Changed) -> Configure:
    """The settings that a move asks for."""
    if isinstance(move.slider, ParameterSlider):
        return Configure(parameters={move.slider.parameter.name: move.value})
    return msgspec.convert({setting_of(move.slider): move.slider.number}, Configure)
