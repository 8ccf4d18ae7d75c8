"""A tiny chat model with a tokenizer and a chat template, on the disk and loaded."""

from pathlib import Path

import pytest

from ladechat.model.loaded import LoadedModel
from tests.checkpoints import load_on_cpu
from tests.llama2 import save_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def loaded(checkpoint: Path) -> LoadedModel:
    return load_on_cpu(checkpoint)


@pytest.fixture(autouse=True)
def _short_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random model ends no message by itself: it writes on to the limit."""
    monkeypatch.setattr("ladechat.train.text.LONGEST_MESSAGE", 24)
