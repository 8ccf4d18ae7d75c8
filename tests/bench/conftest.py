"""A tiny random model with a tokenizer and a chat template, loaded once."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from ladechat.bench import measure
from ladechat.model.loaded import LoadedModel
from tests.checkpoints import load_on_cpu
from tests.llama2 import save_checkpoint
from tests.made_up_maps import save_made_up


@pytest.fixture(autouse=True, scope="package")
def _garbage_of_the_tests() -> Iterator[None]:
    """Looking through all that a worker has imported takes longer than what is measured here."""
    with patch.object(measure, "collect_rarely", lambda: None):
        yield


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_checkpoint(tmp_path_factory.mktemp("checkpoint"))
    save_made_up(folder)
    return folder


@pytest.fixture(scope="session")
def loaded(checkpoint: Path) -> LoadedModel:
    return load_on_cpu(checkpoint)
