"""The clocks of a race, in words."""

from ladechat.session.playing import Clock
from ladechat.widgets.units import PASS, in_unit

_BY_PASSES, _BY_TIME = "pass by pass", "measured time"
_OF_PASSES = {
    Clock.PASSES: (
        _BY_PASSES,
        "Shown as if all passes took equally long, as they nearly do on a large GPU. C: the time they took here.",
    ),
    Clock.SECONDS: (
        _BY_TIME,
        "Each pass takes the time it took here: that wide is its bar, and as high as it gave tokens. C: pass by pass.",
    ),
}
_OF_OTHER_STEPS = {
    Clock.PASSES: (_BY_PASSES, "Shown as if all passes took equally long. C: the time they took here."),
    Clock.SECONDS: (_BY_TIME, "Each pass takes the time it took here: that wide is its bar. C: pass by pass."),
}


def described(clock: Clock, unit: str) -> tuple[str, str]:
    """Return the name and the explanation of a clock, where a step is a `unit`."""
    name, sentence = (_OF_PASSES if unit == PASS else _OF_OTHER_STEPS)[clock]
    return in_unit(name, unit), in_unit(sentence, unit)
