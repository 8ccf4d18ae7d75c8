"""A running mean with limited memory."""

from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class RunningMean(Generic[Value]):
    """The mean of about the latest `memory` values.

    Args:
        memory: older values count less and less.
        value: the initial assumption: a number, or an array.
        weight: the weight of that assumption, in values.
    """

    def __init__(self, memory: float, value: Value, weight: float = 0.0) -> None:
        self.value, self.weight = value, weight
        self._memory = memory

    def add(self, value: Value) -> None:
        """Add a value."""
        self.weight = min(self.weight + 1, self._memory)
        mean: Any = self.value
        self.value = mean + (value - mean) / self.weight
