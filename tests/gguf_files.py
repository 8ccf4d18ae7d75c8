"""Small GGUF files, written as llama.cpp's converter writes them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from transformers import PreTrainedModel, PreTrainedTokenizerBase

TEMPLATE = (
    "{% for m in messages %}{{ bos_token }}[{{ m.role }}] {{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}"
    "{% endif %}{% endfor %}"
)

Facts = Mapping[str, tuple[str, Any]]
"""Further metadata: by key, the method of the writer that adds it, and the value."""


def write_gguf(
    path: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    kind: Kind = Kind.F32,
    facts: Facts | None = None,
    tensors: Mapping[str, np.ndarray[Any, Any] | None] | None = None,
    template: str | None = TEMPLATE,
    without: Sequence[str] = (),
    most_tensors: int = 0,
) -> Path:
    """Write a Llama or Qwen and its tokenizer.

    Args:
        path: of the file.
        model: whose weights they are.
        tokenizer: its own, of bytes or of SentencePiece's manner.
        kind: what its matrices are packed as.
        facts: further metadata.
        tensors: further tensors by name; None leaves one out.
        template: its chat template; None: it has none.
        without: tokens with a role that it does not name, as "eos_token_id".
        most_tensors: the most in one part of the file; 0: it has one.
    """
    config: Any = model.config
    writer = gguf.GGUFWriter(path, config.model_type, split_max_tensors=most_tensors)
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if config.model_type == "llama":
        writer.add_rope_dimension_count(config.head_dim)
    _add_tokenizer(writer, tokenizer, template, without)
    for key, (method, value) in (facts or {}).items():
        getattr(writer, method)(key, value)
    changed = dict(tensors or {})
    for name, weight in _as_converted(model).items():
        wanted = changed.pop(name, weight)
        if wanted is not None:
            _add_tensor(writer, name, wanted, kind)
    for name, extra in changed.items():
        if extra is not None:
            _add_tensor(writer, name, extra, Kind.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def packed_and_unpacked(model: PreTrainedModel, kind: Kind) -> dict[str, torch.Tensor]:
    """The weights as they are behind packing and unpacking their matrices, by the names of transformers."""
    return {
        name: torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(weight.numpy(), kind), kind))
        if weight.dim() == 2
        else weight
        for name, weight in model.state_dict().items()
    }


def _as_converted(model: PreTrainedModel) -> dict[str, np.ndarray[Any, Any]]:
    """The weights by llama.cpp's names; of a Llama, the rows of queries and keys in the order of its rotary angles."""
    config: Any = model.config
    names = gguf.get_tensor_name_map(
        next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == config.model_type),
        config.num_hidden_layers,
    )
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    found = {}
    for name, weight in model.state_dict().items():
        stem, _, end = name.rpartition(".")
        values = weight.numpy()
        if config.model_type == "llama" and stem.rpartition(".")[2] in heads:
            values = _interleaved(values, heads[stem.rpartition(".")[2]])
        found[f"{names.get_name(stem)}.{end}"] = np.ascontiguousarray(values)
    return found


def _interleaved(rows: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Within each head the two rows that are turned together, one behind the other: (2, half) becomes (half, 2)."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(rows.shape)


def _add_tensor(writer: Any, name: str, values: np.ndarray[Any, Any], kind: Kind) -> None:
    if values.ndim == 2 and kind != Kind.F32:
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    else:
        writer.add_tensor(name, values)


def _add_tokenizer(
    writer: Any, tokenizer: PreTrainedTokenizerBase, template: str | None, without: Sequence[str]
) -> None:
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    tokens = [str(tokenizer.convert_ids_to_tokens(index)) for index in range(len(tokenizer))]
    special = {token["content"] for token in backend["added_tokens"]}
    of_bytes = backend["model"]["byte_fallback"]
    kinds: dict[bool, Callable[[str], gguf.TokenType]] = {
        True: lambda token: gguf.TokenType.BYTE if token.startswith("<0x") else gguf.TokenType.NORMAL,
        False: lambda token: gguf.TokenType.NORMAL,
    }
    writer.add_tokenizer_model("llama" if of_bytes else "gpt2")
    writer.add_tokenizer_pre("default" if of_bytes else "gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else kinds[of_bytes](token) for token in tokens])
    if of_bytes:
        writer.add_token_scores([-float(index) for index in range(len(tokens))])
    else:
        writer.add_token_merges([" ".join(pair) for pair in backend["model"]["merges"]])
    for role in sorted({"bos_token_id", "eos_token_id", "unk_token_id"} - set(without)):
        getattr(writer, f"add_{role}")(getattr(tokenizer, role))
    if template is not None:
        writer.add_chat_template(template)
