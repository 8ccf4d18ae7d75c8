"""Loads a checkpoint into a runner, and tells what it found."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ladechat.model.cache_probe import PlainDecodingOnly, UnsupportedModel
from ladechat.model.checkpoint import LoadError, first_sentence, is_gguf, tokenizer_fingerprint
from ladechat.model.eager import EagerRunner
from ladechat.model.followers import Followers
from ladechat.model.gguf_file import GgufFile, gguf_config, read_gguf
from ladechat.model.gguf_tokenizer import gguf_tokenizer
from ladechat.model.leading import LeadingRunner
from ladechat.model.memory import check_memory, useful_cache_bytes
from ladechat.model.quantization import check_quantization, described_parameters, quantization_method
from ladechat.model.rope import stretched_context
from ladechat.model.sampling_defaults import SamplingDefaults, sampling_defaults
from ladechat.model.self_check import check_layouts, check_one_direction
from ladechat.model.stepwise import StepwiseRunner
from ladechat.model.tensor_parallel import check_shards, devices_for, first_shard
from ladechat.model.weight_only import check_weight_only, weight_only_bytes
from ladechat.model.weights import FractionProgress, load_weights

FALLBACK_CONTEXT = 2048
"""For checkpoints that do not say how many positions they have."""

Report = Callable[[str], None]
"""Told what is being done, at the beginning of each stage."""

WEIGHTS_STAGE = "loading the weights"
CHECK_STAGE = "checking that the model decodes as the method needs"


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, and the facts about it."""

    runner: EagerRunner | StepwiseRunner | LeadingRunner
    tokenizer: PreTrainedTokenizerBase
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
    sampling_defaults: SamplingDefaults | None
    eos_ids: frozenset[int]
    load_seconds: float

    @property
    def plain_only(self) -> str | None:
        """Why this model writes one token a pass, whatever decoder is wanted; None if any can be used."""
        return self.runner.plain_only


def load(
    folder: Path,
    name: str,
    device: str,
    dtype: str,
    report: Report,
    progress: FractionProgress,
    followers: Followers | None = None,
    quantize: str | None = None,
) -> LoadedModel:
    """Load a checkpoint, safetensors or GGUF, running no code that comes with it.

    Args:
        folder: where its files are, or the GGUF file (see `ladechat.model.checkpoint.fetch`).
        name: what it is called in messages.
        device: "auto", or what torch calls a device.
        dtype: "auto", or the name of a floating-point type of torch.
        report: told of each stage.
        progress: told how much of the weights is read.
        followers: the other processes that share the model, if there are any.
        quantize: how its weights are quantised while they are read: "int8" or "int4"; None leaves them as they are.

    Raises:
        LoadError: it cannot be loaded here, and why.
    """
    started = time.perf_counter()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    packed = read_gguf(folder, name) if is_gguf(folder) else None
    if packed is not None:
        _check_packed(packed, quantize, followers)
    leave_a_core_free(followers.processes if followers else 1)
    config = _config(folder, name, packed)
    devices = devices_for(followers.processes, device) if followers else [choose_device(device)]
    place = devices[0]
    number_type = choose_dtype("bfloat16" if dtype == "auto" and quantize == "int4" else dtype, place, config)
    text = config.get_text_config()  # of a model that also sees or hears, the part that writes
    context_length = _context_length(text)
    unpacked = check_quantization(name, config, place)
    method = quantization_method(config)
    parameters = described_parameters(config) if method else None
    plain_parameters = packed.parameters if packed else parameters if unpacked else None
    cache_bytes = useful_cache_bytes(text, context_length, number_type)
    quantised_bytes = None
    if quantize is not None:
        check_weight_only(quantize, name, method, place, number_type)
        parameters, quantised_bytes = described_parameters(config), weight_only_bytes(config, number_type, quantize)
    if followers is None:
        check_memory(folder, name, place, number_type, cache_bytes, plain_parameters, quantised_bytes)
    else:
        check_shards(folder, name, config, devices, number_type, cache_bytes)
    report(WEIGHTS_STAGE)
    tokenizer = _tokenizer(folder, name) if packed is None else gguf_tokenizer(packed)
    mesh = first_shard(followers, folder, name, devices, number_type, context_length) if followers else None
    model = load_weights(folder, name, place, number_type, method is not None, progress, mesh, quantize)
    report(CHECK_STAGE)
    try:
        runner = choose_runner(model, context_length)
    except UnsupportedModel as error:
        raise _unsupported(str(error)) from error
    return LoadedModel(
        runner=LeadingRunner(runner, followers) if followers else runner,
        tokenizer=tokenizer,
        folder=folder,
        name=name,
        model_type=config.model_type,
        tokenizer_fingerprint=(packed.tokenizer_fingerprint if packed else tokenizer_fingerprint(folder)) or "unknown",
        parameters=parameters or model.num_parameters(),
        layers=int(text.num_hidden_layers),
        vocabulary=int(text.vocab_size),
        context_length=context_length,
        device=_device_name(place) if followers is None else f"{len(devices)} × {_device_name(place)}",
        dtype=str(model.dtype).removeprefix("torch."),
        quantization=packed.quantization if packed else method or quantize,
        sampling_defaults=sampling_defaults(folder),
        eos_ids=_eos_ids(model, tokenizer),
        load_seconds=time.perf_counter() - started,
    )


def choose_runner(model: PreTrainedModel, context_length: int) -> EagerRunner | StepwiseRunner:
    """The runner that a model can follow: one that verifies drafts, or else one for plain decoding.

    Raises:
        UnsupportedModel: it cannot be decoded at all.
    """
    try:
        runner = EagerRunner(model, context_length)
        check_layouts(runner)
    except PlainDecodingOnly as error:
        check_one_direction(model)
        return StepwiseRunner(model, context_length, str(error))
    return runner


def leave_a_core_free(processes: int = 1) -> None:
    """Let torch compute on all cores but one, shared by so many processes, unless OMP_NUM_THREADS says otherwise.

    Its threads wait for each other many times in a pass. One that has to share its core with the screen holds all of
    them up: measured on two cores, a pass then takes ten times as long as on a single thread.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        torch.set_num_threads(max(1, (available - 1) // processes))


def choose_device(wanted: str) -> torch.device:
    """A GPU if there is one, unless another device is wanted.

    Raises:
        LoadError: torch has no such device here.
    """
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        hint = "Use --device auto, cpu, cuda, cuda:1 or mps."
        raise LoadError("load_failed", f"There is no device {wanted!r} that torch could use here.", hint) from error
    return device


def choose_dtype(wanted: str, device: torch.device, config: Any) -> torch.dtype:
    """float32 on a CPU, where half precision is slower; elsewhere the checkpoint's own type, where it runs.

    Raises:
        LoadError: torch has no such floating-point type.
    """
    if wanted != "auto":
        dtype = getattr(torch, wanted, None)
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            hint = "Use --dtype auto, float32, bfloat16, float16 or float64."
            raise LoadError("load_failed", f"There is no floating-point type {wanted!r}.", hint)
        return dtype
    if device.type == "cpu":
        return torch.float32
    own = getattr(config, "dtype", None) or torch.float16
    if own == torch.bfloat16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.float16 if own == torch.float32 or device.type == "mps" else own


def _check_packed(file: GgufFile, quantize: str | None, followers: Followers | None) -> None:
    """Refuse what cannot be done with a GGUF file."""
    option = "--quantize" if quantize else "--tensor-parallel" if followers else None
    if option is not None:
        message = f"{file.name} is a GGUF file, which transformers can only unpack, on one device."
        raise LoadError("load_failed", message, f"Leave {option} away, or give the model that it was made from.")


def _config(folder: Path, name: str, packed: GgufFile | None) -> Any:
    try:
        config = (
            AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
            if packed is None
            else gguf_config(packed)
        )
    except LoadError:
        raise
    except Exception as error:  # reading what others wrote, the libraries raise anything
        message = f"transformers finds no model that it knows in the config.json of {name}: {first_sentence(error)}"
        raise _unsupported(message) from error
    decoder_only = not config.is_encoder_decoder and config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if not decoder_only or not hasattr(config.get_text_config(), "num_hidden_layers"):
        raise _unsupported(f"{name} is of type {config.model_type!r}, which is not a decoder-only language model.")
    return config


def _context_length(config: Any) -> int:
    """The positions a model may use."""
    longest = getattr(config, "max_position_embeddings", None) or FALLBACK_CONTEXT
    return stretched_context(config, int(longest))


def _tokenizer(folder: Path, name: str) -> PreTrainedTokenizerBase:
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # reading what others wrote, the libraries raise anything
        message = f"{name} has no tokenizer that can be read: {first_sentence(error)}"
        raise LoadError("load_failed", message, "Put tokenizer.json or tokenizer.model beside the weights.") from error
    return tokenizer


def _eos_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every id that any part of the checkpoint calls an end of text."""
    found: set[int] = set()
    generation = getattr(model, "generation_config", None)
    for owner in (generation, model.config, tokenizer):
        ids = getattr(owner, "eos_token_id", None)
        found.update([ids] if isinstance(ids, int) else ids or [])
    return frozenset(found)


def _unsupported(message: str) -> LoadError:
    return LoadError(
        "unsupported_architecture",
        message,
        "Use a decoder-only model with a KV cache: Llama, Mistral, Qwen, Gemma, Phi …",
    )


def _device_name(device: torch.device) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
