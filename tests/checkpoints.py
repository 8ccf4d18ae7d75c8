"""Small checkpoints on the disk, and what they are when they are loaded on a CPU."""

from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from ladechat.engine.service import Service
from ladechat.model.load import load
from ladechat.model.loaded import LoadedModel
from ladechat.protocol import Settings
from tests.engine.tokenizers import byte_level
from tests.tiny import random_model

LOOKAHEAD = Settings(decoder="lookahead")


def save(folder: Path, model: Any, tokenizer: PreTrainedTokenizerBase | None = None, **options: Any) -> Path:
    """Save a model with a tokenizer, by default one of bytes; the options are those of `save_pretrained`."""
    model.save_pretrained(folder, **options)
    (tokenizer or byte_level()).save_pretrained(folder)
    return folder


def save_tiny(folder: Path, **changes: Any) -> Path:
    """Save a random Llama, each token of which is a few bytes: its text does not settle into a loop at once."""
    return save(folder, random_model(5, vocab_size=len(byte_level()), **changes))


def save_recurrent(folder: Path) -> Path:
    """Save a model with a recurrent state, which takes one token a pass."""
    return save(folder, random_model(0, "mamba", vocab_size=len(byte_level()), state_size=4))


def load_on_cpu(folder: Path, dtype: str = "float32", name: str = "tiny", **options: Any) -> LoadedModel:
    """Load a checkpoint, and listen to nothing that is said meanwhile; the options are those of `load`.

    GGUF files are computed exactly unless the options say otherwise: else the times of this machine would decide.
    """
    return load(folder, name, "cpu", dtype, lambda _: None, lambda _: None, **{"passes": "exact", **options})


def service_of(folder: Path, settings: Settings = LOOKAHEAD) -> Service:
    """The engine's service of a checkpoint."""
    return Service.of(load_on_cpu(folder), settings)
