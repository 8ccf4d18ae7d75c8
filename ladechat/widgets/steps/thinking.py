"""How long a model has thought before its answer."""

from collections.abc import Iterable
from typing import NamedTuple

from ladechat.protocol import DrawnStep, Step
from ladechat.widgets.formatting import counted, duration
from ladechat.widgets.units import CHUNK, PASS


class Thinking(NamedTuple):
    """The length of thoughts, in tokens and in seconds, without the prompt's and those of pauses."""

    tokens: int = 0
    seconds: float = 0.0

    def after(self, steps: Iterable[Step | DrawnStep]) -> "Thinking":
        """Return the length with the thoughts of further steps."""
        shares = [
            (step.reasoning, step.timing.step_ms / 1000 * step.reasoning / len(step.pieces))
            for step in steps
            if step.pieces
        ]
        return Thinking(*map(sum, zip(self, *shares, strict=True)))

    def in_words(self, unit: str = PASS) -> str:
        """Return it as text. A server whose steps are chunks tells these instead of tokens."""
        return f"{counted(self.tokens, CHUNK if unit == CHUNK else 'token')} in {duration(self.seconds)}"
