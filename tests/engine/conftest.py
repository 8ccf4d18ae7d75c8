"""One engine with the bundled model for all tests that ask it nothing special."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from ladechat.engine import interruptible, server
from ladechat.protocol import Configure, SettingsApplied, Stop
from tests.checkpoints import save_tiny
from tests.engine.inside import Inside, inside
from tests.hostile_folder import HostileFolder
from tests.tiny import small_demo
from tests.waiting import patience, wait_for


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileFolder:
    """A folder that engines are started in."""
    return HostileFolder(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="package")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model, for tests that load one of their own."""
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="package", autouse=True)
def _no_garbage_of_the_tests() -> Iterator[None]:
    """Engines in this process leave out what the tests have: looking through it takes longer than most commands."""
    with patch.object(server, "gc", SimpleNamespace(collect=lambda: None)):
        yield


@pytest.fixture(scope="package")
def running_engine() -> Iterator[Inside]:
    """The engine itself. Tests take `engine`."""
    with inside(small_demo()) as engine:
        yield engine


@pytest.fixture
def unasked_in_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a prompt takes to be made, nobody asks meanwhile whether a stop is wanted: tests count who asks."""
    monkeypatch.setattr(interruptible, "SECONDS_BETWEEN_LOOKS", patience())


@pytest.fixture
def engine(running_engine: Inside) -> Iterator[Inside]:
    """An engine at full speed, with settings that are always the same, whatever a test before has left under way."""
    running_engine.send(Stop())
    running_engine.go_on()
    running_engine.send(Configure(decoder="lookahead", parameters={"window": 5, "ngram": 3, "guesses": 5}))
    running_engine.until(SettingsApplied)
    yield running_engine
    wait_for(nothing_is_left_to_end)


def nothing_is_left_to_end() -> bool:
    """Whether work that was given up has ended: it would take processor and memory of the next test."""
    return all(thread.name != "work" for thread in threading.enumerate())
