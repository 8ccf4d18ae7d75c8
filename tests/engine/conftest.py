"""One engine with the bundled model for all tests that ask it nothing special: starting one takes many seconds."""

from collections.abc import Iterator

import pytest

from ladechat.protocol import Configure, SettingsApplied
from tests.engine.wire import Wire, started


@pytest.fixture(scope="package")
def running_engine() -> Iterator[Wire]:
    """The engine itself. Tests take `engine`."""
    wire, _ = started()
    yield wire
    assert wire.end() == 0


@pytest.fixture
def engine(running_engine: Wire) -> Wire:
    """An engine with settings that are always the same."""
    running_engine.send(Configure(decoder="lookahead", parameters={"window": 5, "ngram": 3, "guesses": 5}))
    running_engine.until(SettingsApplied)
    return running_engine
