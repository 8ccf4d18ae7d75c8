"""A model ready to run, and the facts about it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladechat.model.llama_cpp.library import PACKAGE
from ladechat.model.loading.device import Threads
from ladechat.model.loading.generation_config import GenerationDefaults
from ladechat.model.runners.model_runner import ModelRunner
from ladechat.model.trained import Maps, fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

COMPUTE = ("torch", "transformers", "torchao", "ladechat", PACKAGE)
"""The packages whose code computes passes."""


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, and the facts about it.

    Attributes:
        runner: runs the passes for a decoder.
        model: transformers' model (of a shared one, the shard of this process), for facts that the runner does not
            have; None where llama.cpp has it. Only the runner may run passes.
        eos_ids: the tokens that end an answer, see `ladechat.model.loading.token_ids`.
        embeddings: the number of its embeddings, for the ids from 0 on.
        notices: sentences about the checkpoint for the user.
        threads: the numbers of threads with which it computes on a CPU.
        maps: the maps and heads trained for it, if any.
        fast_passes: whether logits may depend on the size of a pass, for speed: drafts may change near ties.
        pass_seconds: the times of passes by their slots, where loading has timed some anyway.
    """

    runner: ModelRunner
    model: Any
    tokenizer: "PreTrainedTokenizerBase"
    folder: Path
    name: str
    model_type: str
    tokenizer_fingerprint: str
    parameters: int
    layers: int
    vocabulary: int
    context_length: int
    device: str
    dtype: str
    quantization: str | None
    sampling_defaults: GenerationDefaults | None
    eos_ids: frozenset[int]
    embeddings: int
    notices: tuple[str, ...]
    load_seconds: float
    threads: Threads
    maps: Maps
    fast_passes: bool = False
    pass_seconds: Mapping[int, float] = field(default_factory=dict)


def pass_facts(loaded: LoadedModel) -> dict[str, Any]:
    """Return the facts by which saved costs and skipped layers are looked up, except the processor.

    Raises:
        LoadError: the weights cannot be read; their fingerprint is one of the facts.
    """
    versions = {}
    for package in COMPUTE:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    config = {} if loaded.model is None else loaded.model.config.to_dict()
    return {
        "config": {key: value for key, value in config.items() if key != "_name_or_path"},
        "weights": fingerprint(loaded.folder),
        "device": loaded.device,  # includes the number of devices that share the model, or the CPU's instructions
        "dtype": loaded.dtype,
        "quantization": loaded.quantization,
        "attention": None if loaded.model is None else loaded.model.config._attn_implementation,
        "threads": loaded.threads._asdict(),
        "versions": versions,
    }
