"""A small Llama, saved with a tokenizer of SentencePiece's manner; a checkpoint that is changed is a test's own."""

from pathlib import Path

import pytest

from tests.checkpoints import save
from tests.engine.tokenizers import sentencepiece
from tests.model.loading.llama import tiny_llama


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save(tmp_path / "checkpoint", tiny_llama(), sentencepiece())


@pytest.fixture
def in_shards(tmp_path: Path) -> Path:
    return save(tmp_path / "shards", tiny_llama(), sentencepiece(), max_shard_size="50KB")
