"""A tiny random model of any type that transformers knows, for the support matrix and the tests."""

import tomllib
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from ladechat.model.kernels.soft_cap import attention_for, soft_cap

with Path(__file__).with_suffix(".toml").open("rb") as _file:
    _read: dict[str, Any] = tomllib.load(_file)

SMALL: dict[str, Any] = _read["small"]
CHANGES: dict[str, dict[str, Any]] = _read["changes"]
VOCABULARY: int = SMALL["vocab_size"]
WINDOW: int = SMALL["sliding_window"]
TINY_VISION = {"image_size": 28, "patch_size": 14, "depth": 1, "num_heads": 4, "num_hidden_layers": 1}


def tiny_config(model_type: str, **changes: Any) -> Any:
    """The configuration of a tiny model of a type: its default one with small numbers, in its parts too."""
    default = AutoConfig.for_model(model_type)
    return AutoConfig.for_model(model_type, **{**_small(default), **changes})


def _small(default: PreTrainedConfig) -> dict[str, Any]:
    described = default.to_dict()
    names = {*described, *default.attribute_map}
    small = {name: value for name, value in SMALL.items() if name in names and not _stays_unset(default, name)}
    if "qk_rope_head_dim" in names:  # latent attention: head_dim is that of the rotated part
        small.update(head_dim=SMALL["qk_rope_head_dim"], num_key_value_heads=SMALL["num_attention_heads"])
    if "is_decoder" in names:
        small["is_decoder"] = True
    if "vision" in default.model_type:
        small.update({name: value for name, value in TINY_VISION.items() if name in names})
    for name in default.sub_configs:
        part = getattr(default, name, None)
        if isinstance(part, PreTrainedConfig):
            small[name] = {"model_type": part.model_type, **_small(part)}
    return {**small, **CHANGES.get(default.model_type, {})}


def _stays_unset(config: PreTrainedConfig, name: str) -> bool:
    return name in ("sliding_window", "q_lora_rank") and getattr(config, name, None) is None


def tiny_model(model_type: str, seed: int = 0, **changes: Any) -> PreTrainedModel:
    """A random model of a type, in float32, whose greedy text does not settle into a loop at once."""
    torch.manual_seed(seed)
    config = tiny_config(model_type, **changes)
    attention = None if soft_cap(config) is None else attention_for(config)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation=attention
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return model
