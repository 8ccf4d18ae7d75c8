"""What is said of a panel or a slider when one asks: its name, and an explanation with the present numbers."""

from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.sliders.sliders import ParameterSlider

Explained = Panel | ParameterSlider


def key_of(one: Explained) -> str:
    """Return what identifies a panel, its id, or a slider: ``slider-`` and the name of its parameter."""
    return one.id or "" if isinstance(one, Panel) else f"slider-{one.parameter.name}"


def name_of(one: Explained) -> str:
    """Return the name of a panel, or the label and the value of a slider."""
    return one.title if isinstance(one, Panel) else f"{one.label.strip()} = {one.value}"


def explained(one: Explained) -> tuple[str, str]:
    """Return the name of a panel, with the pass that it shows, or of a slider, and the explanation."""
    if isinstance(one, Panel):
        return " · ".join(filter(None, (one.title, one.moment))), one.explanation
    text = one.parameter.help.removeprefix(f"{one.label.strip()}: ")
    text = text[:1].upper() + text[1:]
    if one.idle:
        text = f"A setting of {one.decoder}, not in use now: moving it changes over to {one.decoder}. {text}"
    return name_of(one), text
