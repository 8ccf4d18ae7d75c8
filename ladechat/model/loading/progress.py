"""What loading reports on its way."""

from collections.abc import Callable

WEIGHTS_STAGE = "loading the weights"
CHECK_STAGE = "checking that the model decodes as the method needs"

Report = Callable[[str], None]
"""Called with the name of each stage at its start."""

FractionProgress = Callable[[float], None]
"""Called with the fraction of the weights that is read, 0 to 1."""
