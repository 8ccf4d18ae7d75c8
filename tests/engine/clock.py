"""A clock that tests put forward: an hour that nobody has to wait for."""

import time
from types import ModuleType

import pytest


class Clock:
    """The time of the machine, which a test can put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self.forward = 0.0
        for module in modules:
            monkeypatch.setattr(module, "time", self)

    def perf_counter(self) -> float:
        return time.perf_counter() + self.forward

    def monotonic(self) -> float:
        return time.monotonic() + self.forward
