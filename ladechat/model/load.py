"""Loads a checkpoint: from its files to a runner, the model, the tokenizer and facts about them."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ladechat.model.checkpoint.faults import faults_said
from ladechat.model.checkpoint.file_checks import check_files
from ladechat.model.checkpoint.files import LoadError, is_gguf, tokenizer_fingerprint
from ladechat.model.checkpoint.generation_config import GenerationDefaults, GenerationFile, read_generation_config
from ladechat.model.checkpoint.gguf_file import GgufFile, read_gguf
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.swap import made_for_kernels, use_kernels
from ladechat.model.loading.config import MOST, read_config, unusable_size, what_is_wrong
from ladechat.model.loading.end_tokens import end_tokens
from ladechat.model.loading.gguf_config import ENDS, gguf_config
from ladechat.model.loading.gguf_tokenizer import gguf_tokenizer
from ladechat.model.loading.heap import freed_at_once
from ladechat.model.loading.known_ids import beyond_embeddings
from ladechat.model.loading.memory import check_described, check_memory, useful_cache_bytes
from ladechat.model.loading.quantization import check_quantization, described_parameters, quantization_method
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.loading.threads import Threads, kernel_threads
from ladechat.model.loading.tokenizer import checkpoint_tokenizer
from ladechat.model.loading.trained_maps import Maps, load_maps
from ladechat.model.loading.weight_only import check_weight_only, weight_only_bytes
from ladechat.model.loading.weights import FractionProgress, adapter_notice, load_weights
from ladechat.model.parallel.rank0 import Rank0Runner
from ladechat.model.parallel.shards import check_shards, devices_for, first_shard
from ladechat.model.parallel.workers import Workers
from ladechat.model.runners.cache_probe import UnsupportedModel
from ladechat.model.runners.out_of_memory import memory_is_used_up
from ladechat.model.runners.rope import stretched_context
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.runners.tree import TreeRunner

logger = logging.getLogger(__name__)

FALLBACK_CONTEXT = 2048
"""The context length for checkpoints that do not give their number of positions."""

Report = Callable[[str], None]
"""Called with the name of each stage at its start."""

LEAST_BYTES = 2
"""The smallest size of a type to compute in: torch can only store shorter floating-point numbers."""
WEIGHTS_STAGE = "loading the weights"
CHECK_STAGE = "checking that the model decodes as the method needs"


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, and the facts about it.

    Attributes:
        runner: runs the passes for a decoder.
        model: the model itself (of a shared one, the shard of this process), for facts that the runner does not have.
            Only the runner may run passes.
        eos_ids: the tokens that end an answer, see `ladechat.model.loading.end_tokens`.
        embeddings: the number of its embeddings, for the ids from 0 on.
        notices: sentences about the checkpoint for the user.
        threads: the numbers of threads with which it computes on a CPU.
        maps: the maps and heads trained for it, if any.
    """

    runner: TreeRunner | SingleTokenRunner | Rank0Runner
    model: PreTrainedModel
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
    sampling_defaults: GenerationDefaults | None
    eos_ids: frozenset[int]
    embeddings: int
    notices: tuple[str, ...]
    load_seconds: float
    threads: Threads
    maps: Maps


def load(
    folder: Path,
    name: str,
    device: str,
    dtype: str,
    report: Report,
    progress: FractionProgress,
    workers: Workers | None = None,
    quantize: str | None = None,
    kernels: Build | None = None,
    maps: Sequence[Path] = (),
) -> LoadedModel:
    """Load a checkpoint, safetensors or GGUF, without running code that comes with it.

    Args:
        folder: the folder of its files, or the GGUF file (see `ladechat.model.checkpoint.fetch`).
        name: its name in messages.
        device: "auto", or torch's name of a device.
        dtype: "auto", or torch's name of a floating-point type.
        report: called with each stage.
        progress: called with the fraction of the weights that is read.
        workers: the other processes that share the model, if there are any.
        quantize: how its weights are quantised while they are read: "int8" or "int4"; None: not at all.
        kernels: the kernels for a model in float32 on a CPU, built while it is loaded; None leaves it to torch.
        maps: files of trained maps and heads, named by the user.

    Raises:
        LoadError: it cannot be loaded; the message says why.
    """
    with faults_said(name, memory_is_used_up):
        started = time.perf_counter()
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        gguf = read_gguf(folder, name) if is_gguf(folder) else None
        if gguf is None:
            check_files(folder, name)
        else:
            _check_gguf_options(gguf, quantize, workers)
        config = _config(folder, name, gguf)
        text = config.get_text_config()  # of a multimodal model, the language model
        devices = devices_for(workers.processes, device) if workers else [choose_device(device)]
        place = devices[0]
        number_type = choose_dtype("bfloat16" if dtype == "auto" and quantize == "int4" else dtype, place, config)
        context_length = _context_length(name, text)
        cache_bytes = useful_cache_bytes(text, context_length, number_type)
        if workers:
            check_shards(folder, name, config, devices, number_type, cache_bytes)
        else:
            _check_fits(folder, name, config, place, number_type, cache_bytes, quantize, gguf)
        if workers or not made_for_kernels(place, number_type):
            kernels = None
        if kernels is not None:
            kernels.start()
        slower = slower_on_cpu(place, dtype, quantize)
        report(WEIGHTS_STAGE if slower is None else f"{WEIGHTS_STAGE}: {slower}")
        tokenizer = checkpoint_tokenizer(folder, name) if gguf is None else gguf_tokenizer(gguf)
        generation = read_generation_config(folder) if gguf is None else GenerationFile(None)
        mesh = first_shard(workers, folder, name, devices, number_type, context_length) if workers else None
        method = quantization_method(config)
        with freed_at_once():
            model = load_weights(folder, name, place, number_type, method is not None, progress, mesh, quantize)
            parameters = described_parameters(config) if method or quantize else model.num_parameters()
            swapped, missing = _swapped(model, kernels)
        report(CHECK_STAGE)
        try:
            runner = choose_runner(model, context_length)
        except UnsupportedModel as error:
            raise _unsupported(str(error)) from error
        shared = Rank0Runner(runner, workers) if workers else runner
        named = [getattr(one, "eos_token_id", None) for one in (model.generation_config, model.config, tokenizer)]
        named += [gguf.facts.get(f"tokenizer.ggml.{role}_token_id") for role in ENDS] if gguf else []
        vocabulary = int(text.vocab_size)
        ends = end_tokens(named, tokenizer, vocabulary)
        embeddings = int(getattr(model.get_input_embeddings(), "num_embeddings", vocabulary))
        said = [adapter_notice(folder), beyond_embeddings(embeddings, tokenizer)]
        return LoadedModel(
            runner=shared,
            model=model,
            tokenizer=tokenizer,
            folder=folder,
            name=name,
            model_type=config.model_type,
            tokenizer_fingerprint=(gguf.tokenizer_fingerprint if gguf else tokenizer_fingerprint(folder)) or "unknown",
            parameters=parameters,
            layers=int(text.num_hidden_layers),
            vocabulary=vocabulary,
            context_length=context_length,
            device=_device_name(place) if workers is None else f"{len(devices)} × {_device_name(place)}",
            dtype=str(model.dtype).removeprefix("torch."),
            quantization=gguf.quantization if gguf else method or quantize,
            sampling_defaults=generation.sampling,
            eos_ids=ends.ids,
            embeddings=embeddings,
            notices=(*generation.left_out, *ends.notices, *(one for one in said if one), *missing),
            threads=Threads(torch.get_num_threads(), kernel_threads() if swapped else 0),
            maps=load_maps(shared, folder, name, model.dtype, maps),
            load_seconds=time.perf_counter() - started,
        )


def _swapped(model: PreTrainedModel, kernels: Build | None) -> tuple[bool, list[str]]:
    """Make a model compute with the kernels. Return whether it does, and notices for the user where they fail."""
    try:
        return kernels is not None and use_kernels(model, kernels, kernel_threads()), []
    except BuildError as error:
        missing = f"Answers are slower than they could be, without ladechat's kernels for the CPU. {error}"
        logger.warning(missing)
        return False, [missing]


def _check_fits(
    folder: Path,
    name: str,
    config: Any,
    device: torch.device,
    dtype: torch.dtype,
    cache_bytes: int,
    quantize: str | None,
    gguf: GgufFile | None,
) -> None:
    """Refuse a model whose quantised weights this machine cannot compute with, or that does not fit the memory."""
    unpacked = check_quantization(name, config, device)
    if gguf is None and quantization_method(config) is None:
        check_described(folder, name, config)
    plain_parameters = gguf.parameters if gguf else described_parameters(config) if unpacked else None
    quantised_bytes = None
    if quantize is not None:
        check_weight_only(quantize, name, quantization_method(config), device, dtype)
        quantised_bytes = weight_only_bytes(config, dtype, quantize)
    check_memory(folder, name, device, dtype, cache_bytes, plain_parameters, quantised_bytes)


def choose_device(wanted: str) -> torch.device:
    """Return the requested device; for "auto" a GPU if there is one, else the CPU.

    Raises:
        LoadError: torch cannot use such a device on this machine.
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
    """Return the requested type; for "auto" float32 on a CPU, where half precision is slower, else 16 bits.

    That is the checkpoint's own type where the device supports it, or else float16.

    Raises:
        LoadError: torch has no such floating-point type, or cannot compute in it.
    """
    if wanted != "auto":
        dtype = getattr(torch, wanted, None)
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or dtype.itemsize < LEAST_BYTES:
            hint = "Use --dtype auto, float32, bfloat16, float16 or float64."
            raise LoadError(
                "load_failed", f"There is no floating-point type {wanted!r} that a model computes in.", hint
            )
        return dtype
    if device.type == "cpu":
        return torch.float32
    own = getattr(config, "dtype", None) or torch.float16
    if own == torch.bfloat16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.float16 if own == torch.float32 or device.type == "mps" else own


def slower_on_cpu(device: torch.device, dtype: str, quantize: str | None) -> str | None:
    """Return why the requested options make a model slower than it could be on a CPU; None where they do not.

    A pass of SmolLM2-135M took 1.4 to 2 times as long in int8 as in float32 with the kernels (AVX-512, 1 and 8 slots),
    and 6 times with AVX2; 1.8 times in bfloat16, up to 3.5 times in float16.
    """
    if device.type != "cpu":
        return None
    if quantize is not None:
        return f"on a CPU, weights in {quantize} save memory, and passes take up to several times as long"
    if dtype not in ("auto", "float32"):
        return f"on a CPU, passes in {dtype} mostly take longer than in float32"
    return None


def _check_gguf_options(file: GgufFile, quantize: str | None, workers: Workers | None) -> None:
    """Refuse options that are not supported for a GGUF file."""
    option = "--quantize" if quantize else "--tensor-parallel" if workers else None
    if option is not None:
        message = f"{file.name} is a GGUF file, which transformers can only unpack, on one device."
        raise LoadError("load_failed", message, f"Leave {option} away, or give the model that it was made from.")


def _config(folder: Path, name: str, gguf: GgufFile | None) -> Any:
    try:
        config = read_config(folder) if gguf is None else gguf_config(gguf)
    except LoadError:
        raise
    except Exception as error:  # on files written by others the libraries may raise anything
        message = f"transformers finds no model that it knows in the config.json of {name}: {what_is_wrong(error)}"
        raise _unsupported(message) from error
    decoder_only = not config.is_encoder_decoder and config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if not decoder_only or not hasattr(config.get_text_config(), "num_hidden_layers"):
        raise _unsupported(f"{name} is of type {config.model_type!r}, which is not a decoder-only language model.")
    wrong = unusable_size(config.get_text_config())
    if wrong is not None:
        raise _unsupported(f"The config.json of {name} says that it {wrong}.")
    return config


def _context_length(name: str, config: Any) -> int:
    """Return the number of positions a model may use.

    Raises:
        LoadError: scaling leaves it fewer than 2, or more than `MOST`.
    """
    longest = int(getattr(config, "max_position_embeddings", None) or 0)
    length = stretched_context(config, longest if longest > 0 else FALLBACK_CONTEXT)
    if not 2 <= length <= MOST:
        raise _unsupported(f"The config.json of {name} says that it has {length} positions (rope_parameters).")
    return length


def _unsupported(message: str) -> LoadError:
    return LoadError(
        "unsupported_architecture",
        message,
        "Use a decoder-only model with a KV cache: Llama, Mistral, Qwen, Gemma, Phi …",
    )


def _device_name(device: torch.device) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
