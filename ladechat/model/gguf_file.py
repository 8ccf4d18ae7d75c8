"""GGUF files: what they hold, asked before a weight is read, and the configuration that transformers makes of it.

transformers unpacks their weights, undoes what llama.cpp's converter changed (the order of rows in the query and key
matrices of a Llama, the offset of Gemma's norms), and passes over what it does not know. That would be another model,
so it is looked for here.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ladechat.model.checkpoint import LoadError, first_sentence

PLAIN = ("F64", "F32", "F16", "BF16")
"""The types of tensors that are not quantised."""

ENDS = ("eos", "eot", "eom")
"""How the metadata calls the tokens that end an answer: of a text, of a turn, of a message."""

ROPE_FACTORS = "rope_freqs.weight"
"""By what the frequencies of the rotary angles are divided. llama.cpp writes it for Llama 3.1 and later."""

LLAMA_3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""What those models have in common; the file does not say it, but for what it makes of the frequencies."""

OTHER_COPY = "Give the folder or the hub id of the model that it was made from; --quantize int8 makes that smaller."


@dataclass(frozen=True)
class GgufFile:
    """What a GGUF file holds.

    Attributes:
        path: where it is.
        name: what it is called in messages.
        facts: its metadata, by key.
        elements: how many numbers each of its tensors has, by name.
        kinds: the type of each of them, as in "Q8_0".
        rope_factors: (head_dim / 2,) float32, by what its frequencies are divided, if it says so.
    """

    path: Path
    name: str
    facts: Mapping[str, Any]
    elements: Mapping[str, int]
    kinds: Mapping[str, str]
    rope_factors: torch.Tensor | None

    @property
    def architecture(self) -> str:
        """What llama.cpp calls its type."""
        return str(self.facts.get("general.architecture"))

    @property
    def parameters(self) -> int:
        """How many numbers its tensors have: what is in memory once they are unpacked."""
        return sum(self.elements.values())

    @property
    def quantization(self) -> str | None:
        """How most of its quantised weights are packed in the file; None if none is."""
        counts: dict[str, int] = {}
        for tensor, kind in self.kinds.items():
            if kind not in PLAIN:
                counts[kind] = counts.get(kind, 0) + self.elements[tensor]
        return f"{max(counts, key=lambda kind: counts[kind])}, unpacked" if counts else None

    @property
    def tokenizer_fingerprint(self) -> str:
        """The beginning of the SHA-256 of its tokenizer: equal fingerprints, equal token ids."""
        keys = sorted(key for key in self.facts if key.startswith("tokenizer.ggml."))
        return hashlib.sha256(repr([(key, self.facts[key]) for key in keys]).encode()).hexdigest()[:16]

    def token_id(self, role: str) -> int | None:
        """The id of the token that has a role, as in "bos"; None where there is none."""
        found = self.facts.get(f"tokenizer.ggml.{role}_token_id")
        return found if isinstance(found, int) and 0 <= found < len(self.tokens) else None

    @property
    def tokens(self) -> list[str]:
        """The tokens of its vocabulary, by their ids."""
        found = self.facts.get("tokenizer.ggml.tokens")
        return found if isinstance(found, list) else []


def read_gguf(path: Path, name: str) -> GgufFile:
    """Read the metadata of a GGUF file, and the names, types and sizes of its tensors.

    Raises:
        LoadError: it is no such file, or damaged, or one of several parts.
    """
    from gguf import GGUFReader  # an extra: `ladechat.model.checkpoint.fetch` has seen to it that it is there

    try:
        reader = GGUFReader(path)
        file = GgufFile(
            path=path.resolve(),
            name=name,
            facts={key: field.contents() for key, field in reader.fields.items()},
            elements={tensor.name: int(tensor.n_elements) for tensor in reader.tensors},
            kinds={tensor.name: tensor.tensor_type.name for tensor in reader.tensors},
            rope_factors=next((_copy(tensor.data) for tensor in reader.tensors if tensor.name == ROPE_FACTORS), None),
        )
    except Exception as error:  # of a damaged file the reader believes everything, and stumbles anywhere
        message = f"{name} cannot be read as a GGUF file: {first_sentence(error)}"
        raise LoadError("load_failed", message, "Check that it is complete; download it again.") from error
    if file.facts.get("split.count", 1) != 1:
        message = (
            f"{name} is one of {file.facts['split.count']} parts of a model, which transformers cannot put together."
        )
        raise LoadError("load_failed", message, "Merge them with llama.cpp (gguf-split --merge), or give another copy.")
    return file


def gguf_config(file: GgufFile) -> Any:
    """The configuration of the model in a GGUF file, by transformers, and by what that leaves out.

    Raises:
        LoadError: transformers cannot read this type, or the file says something of the model that it would ignore.
    """
    try:
        config = AutoConfig.from_pretrained(file.path.parent, gguf_file=str(file.path), local_files_only=True)
    except Exception as error:  # reading what others wrote, the library raises anything
        raise unreadable(file, error) from error
    ends = [end for end in map(file.token_id, ENDS) if end is not None]
    config.bos_token_id, config.eos_token_id = file.token_id("bos"), ends or None
    scaling = file.facts.get(f"{file.architecture}.rope.scaling.type", "none")
    if scaling != "none":
        raise _ignored(file, f"rotary positions that are stretched ({scaling})")
    if file.rope_factors is not None and file.architecture != "llama":
        raise _ignored(file, "factors for the rotary angles")
    if file.rope_factors is not None:
        config.rope_parameters = _llama_3_rope(file, config)
    return config


def unreadable(file: GgufFile, error: Exception) -> LoadError:
    """That transformers cannot read a file of this type, and what it says."""
    message = f"transformers cannot read the type {file.architecture!r} from {file.name}: {first_sentence(error)}"
    return LoadError("unsupported_architecture", message, OTHER_COPY)


def check_tensors(file: GgufFile, places: Mapping[str, str], sizes: Mapping[str, int]) -> None:
    """Refuse a file whose tensors are not those of the model: transformers leaves out what it has no place for, and
    puts what has another size into its place.

    Args:
        file: whose tensors they are.
        places: the weight of the model that each tensor goes into, or into a part of which.
        sizes: how many numbers the weights of the model have.

    Raises:
        LoadError: some would be left out, or do not fit.
    """
    left = sorted(set(file.elements) - set(places) - {ROPE_FACTORS})
    if left:
        raise _ignored(file, f"{len(left)} tensors without a place in the model, such as {left[0]}")
    held: dict[str, int] = {}
    for tensor, elements in file.elements.items():
        if tensor in places:
            held[places[tensor]] = held.get(places[tensor], 0) + elements
    wrong = sorted(weight for weight, elements in held.items() if elements != sizes.get(weight, elements))
    if wrong:
        message = f"{file.name} describes a model whose {wrong[0]} has another size than the one in the file."
        raise LoadError("load_failed", message, OTHER_COPY)


def _ignored(file: GgufFile, what: str) -> LoadError:
    message = f"{file.name} has {what}, which transformers would leave out of a {file.architecture!r} from GGUF."
    return LoadError("unsupported_architecture", message, OTHER_COPY)


def _llama_3_rope(file: GgufFile, config: Any) -> dict[str, Any]:
    """The settings of rotary angles that give the factors in the file: those of Llama 3.1 and later."""
    assert file.rope_factors is not None
    theta = config.rope_parameters["rope_theta"]
    settings = {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": float(file.rope_factors.max().round()),
        **LLAMA_3_ROPE,
    }
    before, config.rope_parameters = config.rope_parameters, settings
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    config.rope_parameters = before
    plain = theta ** -(torch.arange(0, len(scaled)) / len(scaled))
    if file.rope_factors.shape != scaled.shape or not torch.allclose(plain / scaled, file.rope_factors, rtol=1e-3):
        raise _ignored(file, "factors for the rotary angles that are not those of Llama 3")
    return settings


def _copy(data: Any) -> torch.Tensor:
    return torch.tensor(data.copy())
