"""The configuration of the model in a GGUF file: that of transformers, with what it leaves out added."""

from typing import Any

import torch
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ladechat.model.checkpoint.gguf_file import GgufFile, ignored, unreadable
from ladechat.model.loading.config import check_listed

ENDS = ("eos", "eot", "eom")
"""The metadata's names of the tokens that end an answer: end of a text, of a turn, of a message."""

LLAMA_3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""The settings common to those models; the file has only the resulting factors of the frequencies."""


def gguf_config(file: GgufFile) -> Any:
    """Return the configuration of the model in a GGUF file, with entries added that transformers leaves out.

    Raises:
        LoadError: transformers cannot read this model type, or would ignore a setting in the file.
    """
    check_listed({key.removeprefix(f"{file.architecture}."): value for key, value in file.facts.items()}, file.name)
    try:
        config = AutoConfig.from_pretrained(file.path.parent, gguf_file=str(file.path), local_files_only=True)
    except Exception as error:  # on files written by others the library may raise anything
        raise unreadable(file, error) from error
    ends = [end for end in map(file.token_id, ENDS) if end is not None]
    config.bos_token_id, config.eos_token_id = file.token_id("bos"), ends or None
    scaling = file.facts.get(f"{file.architecture}.rope.scaling.type", "none")
    if scaling != "none":
        raise ignored(file, f"rotary positions that are stretched ({scaling})")
    if file.rope_factors is not None and file.architecture != "llama":
        raise ignored(file, "factors for the rotary angles")
    if file.rope_factors is not None:
        config.rope_parameters = _llama_3_rope(file, config)
    return config


def _llama_3_rope(file: GgufFile, config: Any) -> dict[str, Any]:
    """Return the rotary settings of Llama 3.1 and later that give the factors in the file."""
    assert file.rope_factors is not None
    factors = torch.from_numpy(file.rope_factors)
    theta = config.rope_parameters["rope_theta"]
    settings = {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": float(factors.max().round()),
        **LLAMA_3_ROPE,
    }
    before, config.rope_parameters = config.rope_parameters, settings
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    config.rope_parameters = before
    plain = theta ** -(torch.arange(0, len(scaled)) / len(scaled))
    if factors.shape != scaled.shape or not torch.allclose(plain / scaled, factors, rtol=1e-3):
        raise ignored(file, "factors for the rotary angles that are not those of Llama 3")
    return settings
