"""The generation config that transformers' `generate` takes from a checkpoint, without invalid values."""

from pathlib import Path
from typing import Any

from transformers import GenerationConfig

from ladechat.model.checkpoint.files import is_gguf
from ladechat.model.checkpoint.generation_config import RULES, read_generation_config


def generation_config(folder: Path, config: Any) -> GenerationConfig | None:
    """Return the generation config of a model; None where it has no file, and transformers derives it from config.json.

    Args:
        folder: the checkpoint, a folder or a GGUF file, whose folder may hold files of other models.
        config: the model's configuration.
    """
    if is_gguf(folder):
        return GenerationConfig.from_model_config(config)
    file = read_generation_config(folder)
    values = file.values
    if values is None:
        return GenerationConfig.from_model_config(config) if file.left_out else None
    try:
        return GenerationConfig.from_dict(dict(values))
    except Exception:  # another invalid value: those used here have been checked
        return GenerationConfig.from_dict({key: value for key, value in values.items() if key in RULES})
