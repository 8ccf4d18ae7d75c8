"""The sliders: one for each number of the decoder that can be set while it runs, and two for sampling."""

from collections.abc import Mapping

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ladechat.protocol import Configure, DecoderInfo, Parameter, Settings, Value
from ladechat.widgets.cells import cell_len, fit, printable
from ladechat.widgets.flow import safe
from ladechat.widgets.sliders.slider import Slider

TEMPERATURE_HELP = (
    "Temperature: 0 takes the likeliest token. Above it the token is drawn first, then compared with the drafts: one "
    "seed, one text."
)
TOP_P_HELP = "Top-p: tokens are drawn from the likeliest ones that have this probability together."
MOST_LABEL_CELLS = 8
NAMES = {"ngram": "n-gram"}
"""Display names of parameters whose names in settings read badly."""
COLUMNS_FOR_NAMES = 46
"""Minimum width for names after letters: ``T temperature`` leaves its track seven cells."""


class ParameterSlider(Slider):
    """A slider that sets a parameter of the decoder of this name."""

    def __init__(self, parameter: Parameter, decoder: str) -> None:
        super().__init__("", int(parameter.default), parameter.least, parameter.most)
        self.adopt(parameter, decoder, 0)

    def adopt(self, parameter: Parameter, decoder: str, label_cells: int) -> None:
        """Change the slider to this parameter, with a label of `label_cells` cells."""
        self.parameter, self.decoder, self.setting = parameter, decoder, parameter.name
        self.minimum, self.maximum = parameter.least, max(parameter.least, parameter.most)
        self.label = fit(parameter.label, label_cells)
        self.tooltip = Content(safe(parameter.help))
        self.refresh()

    @property
    def idle(self) -> bool:
        """Whether another decoder than the parameter's is active."""
        return self.has_class("-idle")

    @property
    def title(self) -> str:
        """The meaning of its letter; "" if the label is a word."""
        name = self.parameter.name
        return (
            NAMES.get(name, printable(name).replace("_", " ")) if cell_len(printable(self.parameter.label)) == 1 else ""
        )


class SamplingSlider(Slider):
    """A slider that sets the field `setting` of `Settings`; its `title` is the meaning of its letter."""

    def __init__(
        self, setting: str, label: str, title: str, value: int, minimum: int, maximum: int, *, unit: float, tooltip: str
    ) -> None:
        super().__init__(label, value, minimum, maximum, unit=unit, tooltip=tooltip, id=f"slider-{setting}")
        self.setting, self.title = setting, title


def command_of(move: Slider.Changed) -> Configure:
    """Return the command that applies the move of a slider."""
    if isinstance(move.slider, ParameterSlider):
        return Configure(parameters={move.slider.setting: move.value})
    return msgspec.convert({move.slider.setting: move.slider.number}, Configure)


class Sliders(Vertical):
    """Shows the active settings, and lets the user change them.

    A decoder that chooses by itself has no parameters; then the sliders are those of the decoder to be set by hand,
    drawn as idle, and moving one switches to that decoder. If there is room, a name follows each letter.
    """

    DEFAULT_CSS = """
    Sliders, Sliders > Vertical { height: auto; }
    Sliders > Vertical { max-height: 8; overflow-y: auto; }
    Sliders > Horizontal { height: 1; }
    Sliders #slider-top_p { margin-left: 2; }
    Sliders.-named #slider-temperature { width: 4fr; }
    Sliders.-named #slider-top_p { width: 3fr; }
    """

    values: reactive[Mapping[str, int]] = reactive(dict[str, int])
    """What the visible sliders of parameters show, also while one moves, by the names of the parameters."""

    def compose(self) -> ComposeResult:
        yield Vertical()
        with Horizontal():
            yield SamplingSlider("temperature", "T", "temperature", 0, 0, 20, unit=0.1, tooltip=TEMPERATURE_HELP)
            yield SamplingSlider("top_p", "P", "top-p", 20, 1, 20, unit=0.05, tooltip=TOP_P_HELP)

    def show(
        self, settings: Settings, info: DecoderInfo, by_hand: DecoderInfo | None, known: Mapping[str, Value]
    ) -> None:
        """Set the sliders to the engine's values.

        Args:
            settings: the active settings.
            info: the decoder.
            by_hand: the decoder whose parameters are shown instead, if there is one.
            known: the last value of each parameter of any decoder.
        """
        owner = by_hand or info
        self._offer([one for one in owner.parameters if one.live and not isinstance(one.default, bool)], owner.name)
        for slider in self.parameter_sliders:
            value = settings.parameters.get(slider.parameter.name, known.get(slider.parameter.name))
            slider.show(slider.parameter.default if value is None else value)
            slider.set_class(by_hand is not None, "-idle")
        self._moved()
        for sampling in self.query(SamplingSlider):
            sampling.show(getattr(settings, sampling.setting))
            sampling.disabled = settings.temperature == 0 and sampling.setting == "top_p"
            sampling.set_class(sampling.disabled, "-idle")

    def _moved(self) -> None:
        self.values = {slider.parameter.name: slider.value for slider in self.parameter_sliders}

    def on_resize(self, _event: events.Resize) -> None:
        self._show_names()

    def _show_names(self) -> None:
        roomy = self.content_size.width >= COLUMNS_FOR_NAMES
        self.set_class(roomy, "-named")
        cells = max((cell_len(slider.title) for slider in self.parameter_sliders), default=0)
        for slider in self.query(ParameterSlider):
            slider.caption = fit(slider.title, cells) if roomy else ""
            slider.refresh()
        for sampling in self.query(SamplingSlider):
            sampling.caption = sampling.title if roomy else ""
            sampling.refresh()

    @property
    def parameter_sliders(self) -> list[ParameterSlider]:
        """The visible ones, from the top."""
        return [slider for slider in self.query(ParameterSlider) if slider.display]

    def _offer(self, parameters: list[Parameter], decoder: str) -> None:
        """Show a slider for each parameter, in this order. Existing ones are reused, so the focus stays."""
        rows = self.query_one(Vertical)
        existing = {slider.parameter.name: slider for slider in rows.query(ParameterSlider)}
        cells = min(max((cell_len(printable(one.label)) for one in parameters), default=0), MOST_LABEL_CELLS)
        for parameter in parameters:
            slider = existing.pop(parameter.name, None)
            if slider is None:
                slider = ParameterSlider(parameter, decoder)
                rows.mount(slider)
                self.watch(slider, "value", self._moved, init=False)
            slider.adopt(parameter, decoder, cells)
            slider.display = True
        for slider in existing.values():
            slider.display = False
        order = {parameter.name: place for place, parameter in enumerate(parameters)}

        def place(child: Widget) -> int:
            return order.get(child.parameter.name, len(order)) if isinstance(child, ParameterSlider) else len(order)

        rows.sort_children(key=place)
        self._show_names()
