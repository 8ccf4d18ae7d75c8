"""A tiny random model with a tokenizer and a chat template, loaded once."""

from pathlib import Path

import pytest

from ladechat.model.load import LoadedModel, load
from tests.llama2 import save_checkpoint
from tests.made_up_maps import save_made_up


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_checkpoint(tmp_path_factory.mktemp("checkpoint"))
    save_made_up(folder)
    return folder


@pytest.fixture(scope="session")
def loaded(checkpoint: Path) -> LoadedModel:
    return load(checkpoint, "tiny", "cpu", "float32", lambda stage: None, lambda fraction: None)
