"""One engine with the bundled model for all tests that ask it nothing special."""

from collections.abc import Iterator

import pytest

from ladechat.protocol import Configure, SettingsApplied
from tests.engine.inside import Inside, inside
from tests.hostile_folder import HostileFolder


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileFolder:
    """A folder that engines are started in."""
    return HostileFolder(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="package")
def running_engine() -> Iterator[Inside]:
    """The engine itself. Tests take `engine`."""
    with inside() as engine:
        yield engine


@pytest.fixture
def engine(running_engine: Inside) -> Inside:
    """An engine at full speed, with settings that are always the same."""
    running_engine.go_on()
    running_engine.send(Configure(decoder="lookahead", parameters={"window": 5, "ngram": 3, "guesses": 5}))
    running_engine.until(SettingsApplied)
    return running_engine
