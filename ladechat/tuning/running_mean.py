"""A mean that forgets."""

from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class RunningMean(Generic[Value]):
    """The mean of about the latest `memory` values.

    Args:
        memory: older values count less and less.
        value: what is assumed before any is seen: a number, or an array of some.
        weight: as many values the assumption counts.
    """

    def __init__(self, memory: float, value: Value, weight: float = 0.0) -> None:
        self.value, self.weight = value, weight
        self._memory = memory

    def add(self, value: Value) -> None:
        """Take in one more."""
        self.weight = min(self.weight + 1, self._memory)
        mean: Any = self.value
        self.value = mean + (value - mean) / self.weight
