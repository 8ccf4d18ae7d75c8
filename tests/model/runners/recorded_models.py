"""Models whose passes are recorded, and what they write as they are."""

from typing import Any

from transformers import PreTrainedModel

from ladechat.decoder.loop import Decoder
from tests.tiny import random_model, run, runner_for, tokens_of

MODELS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, tied, biased": {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    "llama, one key head": {"num_key_value_heads": 1},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3"},
    "mistral": {"model_type": "mistral", "sliding_window": None},
    "mistral, window": {"model_type": "mistral", "sliding_window": 6},
    "hybrid": {"model_type": "gemma3_text", "sliding_window": 6, "num_hidden_layers": 6},
    "gemma2, a low cap": {"model_type": "gemma2", "attn_logit_softcapping": 2.0, "attn_implementation": "eager"},
    "gpt2": {"model_type": "gpt2", "n_head": 4, "n_layer": 2},
}


def model_of(name: str, seed: int = 1, **changes: Any) -> PreTrainedModel:
    return random_model(seed, **{"max_position_embeddings": 2048, **MODELS[name], **changes})


def written(model: PreTrainedModel, prompt: list[int], limit: int) -> list[int]:
    """What plain decoding writes, by the model as it is."""
    return tokens_of(run(Decoder(runner_for(model, context_length=2048)), prompt, limit))
