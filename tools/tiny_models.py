"""A tiny random model of any type that transformers knows, for the support matrix and the tests."""

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

VOCABULARY = 97
WINDOW = 8
"""The sliding window of those that have one, much shorter than the texts."""

CHUNK = 8
LAYERS = 4
HEADS = 4
HIDDEN = 32

SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "n_embd": HIDDEN,
    "d_model": HIDDEN,
    "intermediate_size": 48,
    "ffn_dim": 48,
    "ffn_hidden_size": 48,
    "num_hidden_layers": LAYERS,
    "n_layers": LAYERS,
    "n_layer": LAYERS,
    "num_layers": LAYERS,
    "num_attention_heads": HEADS,
    "n_heads": HEADS,
    "n_head": HEADS,
    "attention_heads": HEADS,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rotary_dim": 4,
    "max_position_embeddings": 512,
    "n_positions": 512,
    "max_seq_len": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "dropout": 0.0,
    "tie_word_embeddings": False,
    # experts
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "num_experts_per_token": 2,
    "moe_k": 2,
    "moe_topk": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "num_expert_group": 1,
    "first_k_dense_replace": 1,
    # latent attention
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_topk": 8,
    # windows, chunks, recurrent states
    "sliding_window": WINDOW,
    "attention_window_size": WINDOW,
    "attention_chunk_size": CHUNK,
    "state_size": 8,
    "mamba_d_state": 8,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "lru_width": HIDDEN,
}
"""Names that configurations use, with small values; a type takes those that its configuration has."""

LINEAR = ["linear_attention"] * 3 + ["full_attention"]
SLIDING = ["sliding_attention"] * 3 + ["full_attention"]
CONVOLVING = ["conv", "conv", "conv", "full_attention"]
TINY_VISION: dict[str, Any] = {"image_size": 28, "patch_size": 14, "depth": 1, "num_heads": 4, "num_hidden_layers": 1}

CHANGES: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3], "mamba_n_heads": 4, "mamba_d_head": 16},
    "blt": {"encoder_hash_byte_group_vocab": 50, "vocab_size": 260},
    "cohere_compass_text": {
        "rope_parameters": {kind: {"rope_theta": 10000.0, "mrope_section": [2, 1, 1]} for kind in set(SLIDING)}
    },
    "cpmant": {"dim_head": 8, "dim_ff": 48, "prompt_types": 4, "segment_types": 4},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0}},
    "doge": {"keep_window_size": WINDOW},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16},
    "gemma3_text": {"layer_types": SLIDING},
    "gemma3n_text": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "intermediate_size": [48] * 4,
        "activation_sparsity_pattern": [0.0] * 4,
        "vocab_size_per_layer_input": VOCABULARY,
        "hidden_size_per_layer_input": 8,
        "laurel_rank": 8,
    },
    "gemma4_text": {"vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8},
    "git": {"image_size": 28, "patch_size": 14},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": WINDOW, "num_heads": 4},
    "granitemoehybrid": {"layer_types": LINEAR, "mamba_d_head": 16},
    "inkling_text": {"sliding_window_size": WINDOW, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    "kimi_linear": {"layer_types": LINEAR, "linear_head_dim": 8, "linear_num_heads": 4, "q_lora_rank": None},
    "lfm2": {"layer_types": CONVOLVING, "full_attn_idxs": [3]},
    "lfm2_moe": {"layer_types": CONVOLVING, "num_dense_layers": 1},
    "longcat_flash": {"expert_ffn_hidden_size": 24, "zero_expert_num": 2, "num_layers": 2, "num_hidden_layers": 4},
    "mamba2": {"num_heads": 4, "head_dim": 16, "n_groups": 1},
    "minimax_m3_vl_text": {
        "layer_types": ["full_attention"] * 2 + ["minimax_m3_sparse"] * 2,
        "dense_intermediate_size": 48,
        "shared_intermediate_size": 24,
        "index_block_size": 4,
        "index_topk_blocks": 2,
        "num_key_value_heads": 1,
        "index_n_heads": 1,
    },
    "nemotron_h": {
        "n_groups": 1,
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "moe_shared_expert_intermediate_size": 24,
    },
    "qwen4_exp_text": {
        "layer_types": ["linear_attention"] * 3 + ["qwen_sparse_attention"],
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
        "ngram_vocab_size_base": 100,
        "split_ngram_parts": 1,
        "make_ngram_vocab_size_divisible_by": 1,
        "ple_embed_dim": 8,
        "output_gate_type": "silu",
    },
    "reformer": {
        "num_attention_heads": 4,
        "axial_pos_shape": [16, 32],
        "axial_pos_embds_dim": [16, 16],
        "num_buckets": 4,
    },
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "xlstm": {"num_heads": 4},
    "zamba2": {
        "layer_types": ["linear_attention", "hybrid"] * 2,
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "mamba_ngroups": 1,
        "n_mamba_heads": 4,
    },
    "zaya": {"num_experts_per_tok": 1, "layer_types": ["hybrid"] * 4, "router_hidden_size": 8},
}
"""What single types want besides."""


def tiny_config(model_type: str, **changes: Any) -> Any:
    """The configuration of a tiny model of a type: its default one with small numbers, in its parts too."""
    default = AutoConfig.for_model(model_type)
    return AutoConfig.for_model(model_type, **{**_small(default), **changes})


def _small(default: PreTrainedConfig) -> dict[str, Any]:
    described = default.to_dict()
    names = {*described, *default.attribute_map}
    small = {name: value for name, value in SMALL.items() if name in names and not _stays_unset(default, name)}
    if "qk_rope_head_dim" in names:  # latent attention: head_dim is that of the rotated part
        small.update(head_dim=SMALL["qk_rope_head_dim"], num_key_value_heads=HEADS)
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
    model: PreTrainedModel = AutoModelForCausalLM.from_config(
        tiny_config(model_type, **changes), dtype=torch.float32
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return model
