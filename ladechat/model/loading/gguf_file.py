"""The metadata of GGUF files, read before any weight.

transformers unpacks their weights, undoes the changes of llama.cpp's converter (the order of rows in the query and key
matrices of a Llama, the offset of Gemma's norms), and skips tensors that it does not know. The result would be another
model, so that is checked here.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.loading.config import check_listed

PLAIN = ("F64", "F32", "F16", "BF16")
"""Tensor types that are not quantised."""

ROPE_FACTORS = "rope_freqs.weight"
"""The tensor of divisors of the rotary frequencies. llama.cpp writes it for Llama 3.1 and later."""

OTHER_COPY = "Give the folder or the hub id of the model that it was made from; --quantize int8 makes that smaller."

ENDS = ("eos", "eot", "eom")
"""The metadata's names of the tokens that end an answer: end of a text, of a turn, of a message."""

LLAMA_3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""The settings common to those models; the file has only the resulting factors of the frequencies."""


@dataclass(frozen=True)
class GgufFile:
    """The content of a GGUF file, without the weights.

    Attributes:
        path: the file.
        name: its name in messages.
        facts: its metadata, by key.
        elements: the number of elements of each tensor, by name.
        kinds: the type of each tensor, such as "Q8_0".
        rope_factors: (head_dim / 2,) float32 divisors of the rotary frequencies, if it has some.
    """

    path: Path
    name: str
    facts: Mapping[str, Any]
    elements: Mapping[str, int]
    kinds: Mapping[str, str]
    rope_factors: NDArray[np.float32] | None

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the model type."""
        return str(self.facts.get("general.architecture"))

    @property
    def parameters(self) -> int:
        """The number of elements of all tensors."""
        return sum(self.elements.values())

    @property
    def quantization(self) -> str | None:
        """The type of most of its quantised weights; None if none is quantised."""
        counts: Counter[str] = Counter()
        for tensor, kind in self.kinds.items():
            counts[kind] += self.elements[tensor] * (kind not in PLAIN)
        kind, elements = counts.most_common(1)[0] if counts else ("", 0)
        return f"{kind}, unpacked" if elements else None

    @property
    def tokenizer_fingerprint(self) -> str:
        """The first 16 hex digits of the SHA-256 of its tokenizer: equal fingerprints, equal token ids."""
        keys = sorted(key for key in self.facts if key.startswith("tokenizer.ggml."))
        return hashlib.sha256(repr([(key, self.facts[key]) for key in keys]).encode()).hexdigest()[:16]

    def token_id(self, role: str) -> int | None:
        """Return the id of the token with a role, such as "bos"; None where there is none."""
        found = self.facts.get(f"tokenizer.ggml.{role}_token_id")
        return found if isinstance(found, int) and 0 <= found < len(self.tokens) else None

    @property
    def tokens(self) -> list[str]:
        """The tokens of its vocabulary, indexed by id."""
        found = self.facts.get("tokenizer.ggml.tokens")
        return found if isinstance(found, list) else []


def read_gguf(path: Path, name: str) -> GgufFile:
    """Read the metadata of a GGUF file, and the names, types and sizes of its tensors.

    Raises:
        LoadError: it is no GGUF file, or damaged, or one of several parts.
    """
    from gguf import GGUFReader  # an extra: `ladechat.model.checkpoint.fetch` has checked that it is installed

    try:
        reader = GGUFReader(path)
        file = GgufFile(
            path=path.resolve(),
            name=name,
            facts={key: field.contents() for key, field in reader.fields.items()},
            elements={tensor.name: int(tensor.n_elements) for tensor in reader.tensors},
            kinds={tensor.name: tensor.tensor_type.name for tensor in reader.tensors},
            rope_factors=next((tensor.data.copy() for tensor in reader.tensors if tensor.name == ROPE_FACTORS), None),
        )
    except Exception as error:  # the reader checks nothing, and may raise anything on a damaged file
        message = f"{name} cannot be read as a GGUF file: {first_sentence(error)}"
        raise LoadError("load_failed", message, "Check that it is complete; download it again.") from error
    if file.facts.get("split.count", 1) != 1:
        parts = f"one of {file.facts['split.count']} parts of a model"
        message = f"{name} is {parts}, which transformers cannot put together."
        raise LoadError("load_failed", message, "Merge them with llama.cpp (gguf-split --merge), or give another copy.")
    return file


def unreadable(file: GgufFile, error: Exception) -> LoadError:
    """Return the error for a model type that transformers cannot read from GGUF, with its reason."""
    message = f"transformers cannot read the type {file.architecture!r} from {file.name}: {first_sentence(error)}"
    return LoadError("unsupported_architecture", message, OTHER_COPY)


def check_tensors(file: GgufFile, places: Mapping[str, str], sizes: Mapping[str, int]) -> None:
    """Raise an error for a file whose tensors are not those of the model.

    transformers leaves out tensors that it has no place for, and accepts tensors of another size.

    `places` has for each tensor the weight of the model that it is, or is a part of; `sizes` each weight's elements.

    Raises:
        LoadError: some tensors would be left out, or do not fit.
    """
    left = sorted(set(file.elements) - set(places) - {ROPE_FACTORS})
    if left:
        raise ignored(file, f"{len(left)} tensors without a place in the model, such as {left[0]}")
    held: Counter[str] = Counter()
    for tensor in file.elements.keys() & places.keys():
        held[places[tensor]] += file.elements[tensor]
    wrong = sorted(weight for weight, elements in held.items() if elements != sizes.get(weight, elements))
    if wrong:
        message = f"{file.name} describes a model whose {wrong[0]} has another size than the one in the file."
        raise LoadError("load_failed", message, OTHER_COPY)


def ignored(file: GgufFile, what: str) -> LoadError:
    """Return the error for a part of the file that transformers would ignore, and so load another model."""
    message = f"{file.name} has {what}, which transformers would leave out of a {file.architecture!r} from GGUF."
    return LoadError("unsupported_architecture", message, OTHER_COPY)


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
    if file.rope_factors is not None:
        if file.architecture != "llama":
            raise ignored(file, "factors for the rotary angles")
        config.rope_parameters = _llama_3_rope(file, torch.from_numpy(file.rope_factors), config)
    return config


def _llama_3_rope(file: GgufFile, factors: torch.Tensor, config: Any) -> dict[str, Any]:
    """Return the rotary settings of Llama 3.1 and later that give these factors."""
    theta = config.rope_parameters["rope_theta"]
    settings = {"rope_type": "llama3", "rope_theta": theta, "factor": float(factors.max().round()), **LLAMA_3_ROPE}
    before, config.rope_parameters = config.rope_parameters, settings
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    config.rope_parameters = before
    plain = theta ** -(torch.arange(0, len(scaled)) / len(scaled))
    if factors.shape != scaled.shape or not torch.allclose(plain / scaled, factors, rtol=1e-3):
        raise ignored(file, "factors for the rotary angles that are not those of Llama 3")
    return settings
