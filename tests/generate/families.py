"""Tiny models of families that `tools.tiny_models` has no recipe for: decoders of pairs, pictures with text, bytes."""

from typing import Any

import torch
from transformers import (
    BartConfig,
    BartForCausalLM,
    BltConfig,
    BltForCausalLM,
    CsmConfig,
    CsmForConditionalGeneration,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Kosmos2_5Config,
    Kosmos2_5ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianForCausalLM,
    PreTrainedModel,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
)

from tests.tiny import SHAPE, VOCABULARY, enlarged
from tools.tiny_models import tiny_model

PAIR: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    **{
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"layers": 2, "ffn_dim": 48}.items()
    },
    **{f"{side}_attention_heads": 4 for side in ("encoder", "decoder")},
}
VISION: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "image_size": 28, "patch_size": 14,
}  # fmt: skip
BYTES: dict[str, Any] = {**SHAPE, "vocab_size": 260, "num_hidden_layers": 2, "num_key_value_heads": 4}


def model_of(family: str, seed: int = 0) -> PreTrainedModel:
    """A random model of a family."""
    if family not in BUILDERS:
        return tiny_model(family, seed)
    torch.manual_seed(seed)
    return enlarged(BUILDERS[family]())


def _blt() -> PreTrainedModel:
    side: dict[str, Any] = {**BYTES, "hidden_size_global": 64}
    config = BltConfig(
        vocab_size=260, patch_in_forward=False, patch_size=4, cross_attn_k=2, encoder_hash_byte_group_size=[2, 3],
        encoder_hash_byte_group_vocab=64, encoder_hash_byte_group_nb_functions=1, patcher_config=dict(BYTES),
        encoder_config=dict(side), decoder_config=dict(side),
        global_config={**BYTES, "hidden_size": 64, "head_dim": 16, "encoder_cross_output_size": 64},
    )  # fmt: skip
    config.num_hidden_layers = 6  # generate asks for it
    return BltForCausalLM(config)


def _csm() -> PreTrainedModel:
    shape: dict[str, Any] = {**SHAPE, "vocab_size": 50}
    return CsmForConditionalGeneration(
        CsmConfig(
            **shape, num_codebooks=4, text_vocab_size=VOCABULARY, codebook_pad_token_id=3, codebook_eos_token_id=2,
            audio_token_id=4, audio_eos_token_id=5,
            depth_decoder_config={**shape, "num_codebooks": 4, "backbone_hidden_size": 32},
        )
    )  # fmt: skip


def _kosmos() -> PreTrainedModel:
    text: dict[str, Any] = {"vocab_size": VOCABULARY, "embed_dim": 32, "layers": 2, "ffn_dim": 48, "attention_heads": 4}
    vision: dict[str, Any] = {**VISION, "hidden_size": 32, "patch_embed_hidden_size": 32}
    config = Kosmos2_5Config(text_config={**text, "pad_token_id": 0}, vision_config=vision, latent_query_num=4)
    return Kosmos2_5ForConditionalGeneration(config)


def _qwen2_vl() -> PreTrainedModel:
    rope: dict[str, Any] = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    vision: dict[str, Any] = {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 32, "patch_size": 14}
    special: dict[str, Any] = {
        "image_token_id": 95,
        "video_token_id": 94,
        "vision_start_token_id": 93,
        "vision_end_token_id": 92,
    }
    config = Qwen2VLConfig(text_config={**SHAPE, "rope_parameters": rope}, vision_config=vision, **special)
    return Qwen2VLForConditionalGeneration(config)


def _idefics3(text: str) -> PreTrainedModel:
    """With a sliding window, which a mistral has masks for and a llama has not."""
    described: dict[str, Any] = {**SHAPE, "model_type": text, "sliding_window": 32}
    config = Idefics3Config(text_config=described, vision_config=VISION, image_token_id=96, pad_token_id=0)
    return Idefics3ForConditionalGeneration(config)


def _llama_with_a_window() -> PreTrainedModel:
    config = LlamaConfig(**SHAPE)
    config.sliding_window = 32
    return LlamaForCausalLM(config)


BUILDERS: dict[str, Any] = {
    "bart": lambda: BartForCausalLM(BartConfig(**PAIR)),
    "marian": lambda: MarianForCausalLM(MarianConfig(**PAIR, decoder_start_token_id=0)),
    "blt": _blt,
    "csm": _csm,
    "kosmos-2.5": _kosmos,
    "qwen2_vl": _qwen2_vl,
    "idefics3 of a llama with a window": lambda: _idefics3("llama"),
    "idefics3 of a mistral with a window": lambda: _idefics3("mistral"),
    "llama with a window": _llama_with_a_window,
}
