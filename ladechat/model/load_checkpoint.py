"""Loads a checkpoint in five steps: its files are found, its facts read, the model built, sped up and checked."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ladechat.model.checkpoint.files import LoadError, check_files, in_words, is_gguf, tokenizer_fingerprint
from ladechat.model.kernels.build import Build
from ladechat.model.kernels.swap import made_for_kernels, packed_share, products_of, use_kernels
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.config import MOST, read_config, unusable_size, what_is_wrong
from ladechat.model.loading.device import Threads, choose_device, choose_dtype, device_name, kernels_for, slower_on_cpu
from ladechat.model.loading.generation_config import GenerationFile, read_generation_config
from ladechat.model.loading.gguf_file import ENDS, GgufFile, gguf_config, read_gguf
from ladechat.model.loading.gguf_tokenizer import gguf_tokenizer
from ladechat.model.loading.needed_memory import check_described, check_memory, own_type, useful_cache_bytes
from ladechat.model.loading.progress import CHECK_STAGE, WEIGHTS_STAGE, FractionProgress, Report
from ladechat.model.loading.quantization import (
    check_quantization,
    check_weight_only,
    described_parameters,
    quantization_method,
    weight_only_bytes,
)
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.loading.token_ids import beyond_embeddings, end_tokens
from ladechat.model.loading.tokenizer import checkpoint_tokenizer
from ladechat.model.loading.weights import adapter_notice, freed_at_once, load_weights
from ladechat.model.parallel.part import PartRunner
from ladechat.model.parallel.rank0 import LookaheadRank0, Rank0Runner
from ladechat.model.parallel.shards import check_copies, check_shards, devices_for, join_group, shards_of
from ladechat.model.parallel.workers import Workers
from ladechat.model.runners.cache_probe import UnsupportedModel
from ladechat.model.runners.cpu_layers import fuse_layers
from ladechat.model.runners.model_runner import ModelRunner
from ladechat.model.runners.rope import stretched_context
from ladechat.model.trained import load_maps

FALLBACK_CONTEXT = 2048
"""The context length for checkpoints that do not give their number of positions."""

UNPACKING = "unpacking the weights, which takes minutes and {}; installed with the extra llama-cpp they stay packed"


@dataclass(frozen=True)
class _Plan:
    """The facts about a checkpoint that are read before its weights.

    Attributes:
        devices: that of each process; one where there are no others.
        dtype: the type in which it computes.
        own_dtype: the type in which its weights are read if they are packed at once: 16 bits, or `dtype`.
        cache_bytes: the memory for a useful cache.
        method: the method by which its weights are quantised already; None if they are not.
        unpacked: the number of its weights, if they are unpacked while they are read.
    """

    config: Any
    devices: list[torch.device]
    dtype: torch.dtype
    own_dtype: torch.dtype
    context_length: int
    cache_bytes: int
    method: str | None
    unpacked: int | None


def load_checkpoint(
    folder: Path,
    name: str,
    device: str,
    dtype: str,
    report: Report,
    progress: FractionProgress,
    workers: Workers | None,
    quantize: str | None,
    kernels: Build | None,
    maps: Sequence[Path],
) -> LoadedModel:
    """Load a checkpoint as `ladechat.model.load.load` says; a GGUF file is unpacked.

    Raises:
        LoadError: it cannot be loaded; the message says why.
    """
    started = time.perf_counter()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    gguf = _find(folder, name, quantize, workers)
    plan = _read(folder, name, gguf, device, dtype, quantize, workers)
    text, place = plan.config.get_text_config(), plan.devices[0]  # of a multimodal model, the language model
    if workers or not made_for_kernels(place, plan.dtype):
        kernels = None
    if kernels is not None:
        kernels.start()
    tokenizer = checkpoint_tokenizer(folder, name) if gguf is None else gguf_tokenizer(gguf)
    generation = read_generation_config(folder) if gguf is None else GenerationFile(None)
    on_cpu = place.type == "cpu"  # where weights are quantised when they are packed, elsewhere while they are read
    library, missing = kernels_for(kernels, quantize if on_cpu else None)
    read_as = plan.own_dtype if library is not None else plan.dtype
    if workers is None:
        rounded = weight_only_bytes(plan.config, plan.dtype, quantize) if quantize and not on_cpu else None
        check_memory(folder, name, place, read_as, plan.cache_bytes, plan.unpacked, rounded)
    slower = slower_on_cpu(place, dtype)
    stage = WEIGHTS_STAGE if plan.unpacked is None or gguf is None else _unpacking(plan.unpacked, read_as)
    report(stage if slower is None else f"{stage}: {slower}")
    with freed_at_once():
        model = _build(folder, name, plan, read_as, progress, workers, None if on_cpu else quantize)
        quantised = plan.method or quantize  # packed weights hide their number
        parameters = described_parameters(plan.config) if quantised else model.num_parameters()
        if library is not None:
            use_kernels(model, library, quantize)
            fuse_layers(model, library)
            if quantize and (share := packed_share(model)) < 1 / 2:
                missing = f"Only {share:.0%} of the weights are quantised: torch computes the others (experts)."
        threads = Threads(torch.get_num_threads(), library.threads if library else 0)
        products = f" ({products_of(model, library)})" if library else ""
    report(CHECK_STAGE)
    runner = _check(model, plan.context_length, workers)
    vocabulary = int(text.vocab_size)
    named = [getattr(one, "eos_token_id", None) for one in (model.generation_config, model.config, tokenizer)]
    named += [gguf.facts.get(f"tokenizer.ggml.{role}_token_id") for role in ENDS] if gguf else []
    ends = end_tokens(named, tokenizer, vocabulary)
    embeddings = int(getattr(model.get_input_embeddings(), "num_embeddings", vocabulary))
    beyond = beyond_embeddings(embeddings, tokenizer)
    notices = (*generation.left_out, *ends.notices, adapter_notice(folder), beyond, missing)
    return LoadedModel(
        runner=runner,
        model=model,
        tokenizer=tokenizer,
        folder=folder,
        name=name,
        model_type=plan.config.model_type,
        tokenizer_fingerprint=(gguf.tokenizer_fingerprint if gguf else tokenizer_fingerprint(folder)) or "unknown",
        parameters=parameters,
        layers=int(text.num_hidden_layers),
        vocabulary=vocabulary,
        context_length=plan.context_length,
        device=_device(place, workers) + products,
        dtype=str(model.dtype).removeprefix("torch."),
        quantization=gguf.quantization if gguf else plan.method or quantize,
        sampling_defaults=generation.sampling,
        eos_ids=ends.ids,
        embeddings=embeddings,
        notices=tuple(filter(None, notices)),
        threads=threads,
        maps=load_maps(runner, folder, name, model.dtype, maps),
        load_seconds=time.perf_counter() - started,
    )


def _find(folder: Path, name: str, quantize: str | None, workers: Workers | None) -> GgufFile | None:
    """Check the files of a checkpoint. Return the metadata of a GGUF file; None for a folder."""
    if not is_gguf(folder):
        check_files(folder, name)
        return None
    gguf = read_gguf(folder, name)
    option = "--quantize" if quantize else workers.option if workers else None
    if option is not None:
        message = f"{name} is a GGUF file, which transformers can only unpack, on one device."
        raise LoadError("load_failed", message, f"Leave {option} away, or give the model that it was made from.")
    return gguf


def _read(
    folder: Path,
    name: str,
    gguf: GgufFile | None,
    device: str,
    dtype: str,
    quantize: str | None,
    workers: Workers | None,
) -> _Plan:
    """Read the facts about a model; refuse one that this machine cannot compute with."""
    config = _config(folder, name, gguf)
    text = config.get_text_config()
    devices = devices_for(workers.processes, device, workers.option) if workers else [choose_device(device)]
    place, method = devices[0], quantization_method(config)
    number_type = choose_dtype(
        "bfloat16" if dtype == "auto" and quantize == "int4" and place.type != "cpu" else dtype, place, config
    )
    longest = int(getattr(text, "max_position_embeddings", None) or 0)
    context_length = stretched_context(text, longest if longest > 0 else FALLBACK_CONTEXT)
    if not 2 <= context_length <= MOST:
        raise _unsupported(f"The config.json of {name} says that it has {context_length} positions (rope_parameters).")
    cache_bytes = useful_cache_bytes(text, context_length, number_type)
    unpacked = gguf.parameters if gguf else None
    if workers and workers.whole:
        check_copies(folder, name, config, devices, number_type, cache_bytes, workers.option)
    elif workers:
        check_shards(folder, name, config, devices, number_type, cache_bytes)
    else:
        if check_quantization(name, config, place) and gguf is None:
            unpacked = described_parameters(config)
        if gguf is None and method is None:
            check_described(folder, name, config)
        if quantize is not None:
            check_weight_only(quantize, name, method, place, number_type)
    own = own_type(folder, config.model_type) if gguf is None and method is None else None
    return _Plan(config, devices, number_type, own or number_type, context_length, cache_bytes, method, unpacked)


def _unpacking(parameters: int, dtype: torch.dtype) -> str:
    """Return the stage of a GGUF file that transformers unpacks, with its need and the way around it."""
    return UNPACKING.format(in_words(parameters * dtype.itemsize))


def _build(
    folder: Path,
    name: str,
    plan: _Plan,
    read_as: torch.dtype,
    progress: FractionProgress,
    workers: Workers | None,
    quantize: str | None,
) -> PreTrainedModel:
    """Return the model with its weights; of a shared one, the shard of this process, after starting the others."""
    mesh = None
    if workers:
        first, *others = shards_of(folder, name, plan.devices, plan.dtype, plan.context_length, workers.whole)
        workers.start(others)
        mesh = join_group(first)
    return load_weights(folder, name, plan.devices[0], read_as, plan.method is not None, progress, mesh, quantize)


def _check(model: PreTrainedModel, context_length: int, workers: Workers | None) -> ModelRunner:
    """Return the runner whose passes give what the model's own give, as its self-check found."""
    try:
        runner = choose_runner(model, context_length)
    except UnsupportedModel as error:
        raise _unsupported(str(error)) from error
    if workers is None or not workers.whole:
        return Rank0Runner(runner, workers) if workers else runner
    try:
        return LookaheadRank0(PartRunner(runner, 0, workers.processes), workers)
    except UnsupportedModel as error:
        raise LoadError("unsupported_architecture", str(error), f"Leave {workers.option} out.") from error


def _device(place: torch.device, workers: Workers | None) -> str:
    """Return the device's name, with the number of processes and their way of sharing: the costs of passes are saved
    under it, and depend on both.
    """
    if workers is None:
        return device_name(place)
    return f"{workers.processes} × {device_name(place)}{', each the whole model' if workers.whole else ''}"


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


def _unsupported(message: str) -> LoadError:
    hint = "Use a decoder-only model with a KV cache: Llama, Mistral, Qwen, Gemma, Phi …"
    return LoadError("unsupported_architecture", message, hint)
