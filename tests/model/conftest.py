"""Fixtures of this room: a hub on this machine, used by this very process; recorded passes of small sizes; kernels."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from ladechat.model.checkpoint import hub as hub_module, transfer
from ladechat.model.checkpoint.hub_answers import httpx
from ladechat.model.kernels.build import Build
from ladechat.model.kernels.library import Library
from ladechat.model.runners import graphs
from tests.hub_server import HubServer, running_hub
from tests.model.checkpoint.hub_model import FILES, NAME
from tests.model.compiled import compiled
from tests.waiting import patience


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub and an empty cache. huggingface_hub read its settings when it was imported, so they are set there."""
    with running_hub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(transfer, "RETRY_SECONDS", (0.0, 0.0))
        monkeypatch.setattr(transfer, "TIMEOUT", httpx.Timeout(patience()))  # a busy machine is no silent hub
        monkeypatch.setattr(hub_module, "SECONDS_TO_ANSWER", patience())
        monkeypatch.setenv("NO_PROXY", "*")
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        close_session()
        yield hub
        close_session()


@pytest.fixture
def served(hub: HubServer) -> HubServer:
    """A hub that has the usual model."""
    hub.add(NAME, FILES)
    return hub


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boundaries between recorded passes that a short text crosses."""
    monkeypatch.setattr(graphs, "SMALLEST_CONTEXT", 32)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The build for this processor."""
    return compiled(tmp_path_factory)


@pytest.fixture(scope="session")
def library(build: Build) -> Library:
    """The kernels on two threads."""
    return Library(build.library(), threads=2)


@pytest.fixture(scope="session")
def build_path(build: Build) -> Path:
    """The library's file."""
    return build.library()
