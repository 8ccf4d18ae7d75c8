"""One engine with the bundled model for all tests that ask it nothing special: starting one takes many seconds."""

from collections.abc import Iterator

import pytest

from ladechat.protocol import Configure, Ready, SettingsApplied
from tests.engine.wire import Wire
from tests.hostile_folder import HostileFolder


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileFolder:
    """The folder that the engine is started in."""
    return HostileFolder(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="package")
def running_engine(hostile: HostileFolder) -> Iterator[Wire]:
    """The engine itself. Tests take `engine`."""
    wire = Wire(folder=hostile.folder)
    wire.until(Ready)
    yield wire
    assert wire.end() == 0


@pytest.fixture
def engine(running_engine: Wire) -> Wire:
    """An engine with settings that are always the same."""
    running_engine.send(Configure(decoder="lookahead", parameters={"window": 5, "ngram": 3, "guesses": 5}))
    running_engine.until(SettingsApplied)
    return running_engine
