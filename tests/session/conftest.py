"""Engines for tests: small scripts that say what an engine says."""

import sys
from pathlib import Path

import pytest

from ladechat.session.live import LiveEngine
from tests.session.scripted import SPEAK, Start


@pytest.fixture
def engine_that(tmp_path: Path) -> Start:
    """An engine whose process runs the given lines of Python."""

    def prepare(code: str) -> LiveEngine:
        script = tmp_path / "engine.py"
        script.write_text(SPEAK + code)
        return LiveEngine([sys.executable, str(script)], logs=tmp_path / "logs")

    return prepare
