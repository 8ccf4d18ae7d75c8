"""A checkpoint that has everything as Llama-2-7b-chat has it but the size: files, config, tokenizer, template."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import LlamaConfig, LlamaForCausalLM

from tests.engine.tokenizers import sentencepiece
from tests.tiny import enlarged

# The format of Llama 2, written anew: every question in [INST], the system's words inside the first of them.
CHAT_TEMPLATE = (
    "{% set talk = messages[1:] if messages[0]['role'] == 'system' else messages %}"
    "{% for message in talk %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Questions and answers must take turns.') }}"
    "{% endif %}"
    "{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' }}"
    "{% if loop.first and messages[0]['role'] == 'system' %}"
    "{{ '<<SYS>>\\n' + messages[0]['content'].strip() + '\\n<</SYS>>\\n\\n' }}"
    "{% endif %}"
    "{{ message['content'].strip() + ' [/INST]' }}"
    "{% else %}"
    "{{ ' ' + message['content'].strip() + ' ' + eos_token }}"
    "{% endif %}"
    "{% endfor %}"
)

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 172,
    "max_position_embeddings": 4096,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 4,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.32.0.dev0",
    "use_cache": True,
}

GENERATION_CONFIG = {
    "bos_token_id": 1,
    "do_sample": True,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "temperature": 0.6,
    "max_length": 4096,
    "top_p": 0.9,
    "transformers_version": "4.32.0.dev0",
}

TOKENIZER_CONFIG = {
    "add_bos_token": True,
    "add_eos_token": False,
    "bos_token": "<s>",
    "chat_template": CHAT_TEMPLATE,
    "clean_up_tokenization_spaces": False,
    "eos_token": "</s>",
    "legacy": False,
    "model_max_length": 1000000000000000019884624838656,
    "pad_token": None,
    "padding_side": "right",
    "tokenizer_class": "LlamaTokenizer",
    "unk_token": "<unk>",
}


def save_checkpoint(folder: Path, **options: Any) -> Path:
    """Write the checkpoint into a folder; the options are those of `save_pretrained`, as in `max_shard_size`."""
    _model().save_pretrained(folder, **options)
    for name, content in (
        ("config.json", {**CONFIG, "vocab_size": len(sentencepiece())}),
        ("generation_config.json", GENERATION_CONFIG),
        ("tokenizer_config.json", TOKENIZER_CONFIG),
    ):
        (folder / name).write_text(json.dumps(content, indent=2))
    (folder / "tokenizer.json").write_text(_tokenizer_json())
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@cache
@torch.random.fork_rng(devices=[])
def _model() -> LlamaForCausalLM:
    """Random weights in float16, large enough that the text does not settle into a loop at once."""
    torch.manual_seed(0)
    config = LlamaConfig(**{**CONFIG, "vocab_size": len(sentencepiece())})
    model = LlamaForCausalLM(config)
    enlarged(model)
    half: LlamaForCausalLM = model.to(torch.float16)  # type: ignore[arg-type]  # its decorator hides that it is bound
    return half


def _tokenizer_json() -> str:
    """The small SentencePiece-style tokenizer, with the beginning-of-text token in front, as Llama 2 has it."""
    tokenizer = Tokenizer.from_str(sentencepiece().backend_tokenizer.to_str())  # others use that one
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    text: str = tokenizer.to_str()
    return text
