"""Loads a GGUF file whose weights stay packed: llama.cpp opens it, checks it and runs it."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from ladechat.installing import command_for_extra
from ladechat.model.checkpoint.files import LoadError, in_words
from ladechat.model.kernels.build import Build
from ladechat.model.llama_cpp.cost_of_exactness import DEAR
from ladechat.model.llama_cpp.exactness import MOST_SLOTS
from ladechat.model.llama_cpp.library import PACKAGE, LibraryMismatch, load_library
from ladechat.model.llama_cpp.model import FileRefused, PackedModel, bytes_of
from ladechat.model.llama_cpp.trial import AUTO, EXACT, Trial, run_trial
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.device import Threads, kernel_threads
from ladechat.model.loading.memory import free_main_memory
from ladechat.model.loading.packed_tokenizer import PackedTokenizer
from ladechat.model.loading.progress import CHECK_STAGE, WEIGHTS_STAGE, FractionProgress, Report
from ladechat.model.loading.token_ids import end_tokens
from ladechat.model.runners.packed import PackedRunner
from ladechat.model.trained import fingerprint, load_maps
from ladechat.tuning.saved import read_value, saved_file, write_value

Passes = str
"""How passes are computed:

- exact: each slot gets the logits of a pass of its own, bit for bit; larger passes are split where that needs it.
- fast: in one piece, with weights rearranged for the processor; drafts may change the text at near ties.
- auto: exact, unless that takes 10 % longer here, or more, as the trial of the file measured.
"""

FALLBACK_CONTEXT = 2048
"""The context length of a file that does not give one."""

FAST_SLOTS = 64
"""The slots of a pass that need not be exact."""

WORTH_KEEPING = 0.01
"""The seconds of a plain pass from which on the times of the trial's passes are used: timing them anew would take one
or two seconds."""

CHECK_COPY = "Check that the file is complete; download it again, or give another copy."
NO_TEMPLATE = "This file has no chat template, so it is asked in plain text: it was hardly made for conversations."


def check_options(name: str, dtype: str, quantize: str | None, shared: str | None, maps: Sequence[Path]) -> None:
    """Refuse options that change what a GGUF file computes with; `shared` is that of several processes.

    Raises:
        LoadError: one is given.
    """
    given = {"--dtype": dtype != "auto", "--quantize": quantize, shared: shared, "--maps": maps}
    option = next((option for option, is_given in given.items() if is_given), None)
    if option is not None:
        message = f"{name} is a GGUF file, which llama.cpp computes with as it is."
        raise LoadError("load_failed", message, f"Leave {option} away, or give the model that it was made from.")


def load_packed(
    path: Path,
    name: str,
    device: str,
    passes: Passes,
    report: Report,
    progress: FractionProgress,
    kernels: Build | None = None,
) -> LoadedModel:
    """Load a GGUF file without unpacking it.

    Args:
        path: the file; of a model in several parts, the first.
        name: its name in messages.
        device: "auto", "cpu", or another device that llama.cpp was built for.
        passes: how passes are computed.
        report: called with each stage.
        progress: called with the fraction of the weights that is read.
        kernels: see `PackedRunner`.

    Raises:
        LoadError: it cannot be loaded; the message says why.
    """
    started = time.perf_counter()
    if kernels is not None:
        kernels.find()
    try:
        load_library()
    except LibraryMismatch as error:
        hint = f"Install the one that is: {command_for_extra('llama-cpp')}"
        raise LoadError("missing_package", str(error), hint) from error
    _check_memory(path, name)
    threads = kernel_threads()
    report(CHECK_STAGE)
    trial = _trial(path, threads, passes, device != "cpu")
    if trial.refused is not None:
        raise _unreadable(name, trial.refused)
    exact = passes == EXACT or (passes == AUTO and trial.cost < DEAR)
    report(WEIGHTS_STAGE)
    model = _open(path, name, device, not exact, progress)
    slots = trial.slots if exact else FAST_SLOTS
    runner = PackedRunner(model, model.context_length or FALLBACK_CONTEXT, threads, slots, kernels)
    tokenizer: Any = PackedTokenizer(model)
    ended_at = [token_id for token_id in tokenizer.added_tokens_decoder if model.ends_an_answer(token_id)]
    ends = end_tokens([model.named_ends, ended_at], tokenizer, model.vocabulary)
    notices = [*ends.notices, None if tokenizer.chat_template else NO_TEMPLATE]
    notices.append(None if exact else _not_exact(trial, passes))
    return LoadedModel(
        runner=runner,
        model=None,
        tokenizer=tokenizer,
        folder=path,
        name=name,
        model_type=model.architecture,
        tokenizer_fingerprint=model.fingerprint,
        parameters=model.parameters,
        layers=model.layers,
        vocabulary=model.vocabulary,
        context_length=runner.context_length,
        device="GPU (llama.cpp)" if model.on_gpu else "cpu (llama.cpp)",
        dtype="float32",
        quantization=f"{model.quantization or 'F32'}, {'exact' if exact else 'not exact'}",
        sampling_defaults=None,
        eos_ids=ends.ids,
        embeddings=model.vocabulary,
        notices=tuple(filter(None, notices)),
        threads=Threads(torch.get_num_threads(), threads),
        maps=load_maps(runner, path, name, torch.float32),
        fast_passes=not exact,
        pass_seconds=_pass_seconds(trial) if exact else {},
        load_seconds=time.perf_counter() - started,
    )


def _open(path: Path, name: str, device: str, repacked: bool, progress: FractionProgress) -> PackedModel:
    try:
        model = PackedModel(path, repacked, device != "cpu", progress)
    except FileRefused as error:
        raise _unreadable(name, str(error)) from error
    if device not in ("auto", "cpu") and not model.on_gpu:
        message = f"The llama.cpp that is installed computes on the CPU only, not on {device}."
        raise LoadError("load_failed", message, "Use --device cpu, or install a build of xllamacpp for it.")
    return model


def _trial(path: Path, threads: int, way: str, gpu: bool) -> Trial:
    """Return the outcome of a file's trial, saved for later sessions if the file can be used.

    The first trial is quick. Where that left passes out, as the model is slow, the next session tries all.
    """
    about = {"weights": fingerprint(path), "changed": path.stat().st_mtime_ns, "library": version(PACKAGE)}
    file = saved_file("trials", **about, threads=threads, way=way, gpu=gpu)
    saved = read_value(file, Trial.from_json)
    if saved is not None and saved.complete:
        return saved
    found = run_trial(path, threads, way, gpu, quick=saved is None)
    if found.refused is None:
        write_value(file, asdict(found))
    return found


def _pass_seconds(trial: Trial) -> dict[int, float]:
    """Return the times of exact passes; larger ones are split. {} where passes are so short that timing them is too."""
    known, most = trial.seconds, trial.slots
    if not trial.complete or known.get(1, 0.0) < WORTH_KEEPING or len(known) < 2:
        return {}
    return {**known, most + 1: known[most] + known[1], 2 * most: 2 * known[most]}


def _check_memory(path: Path, name: str) -> None:
    """Refuse a file that is larger than the free memory: its weights would be read from disk for each token."""
    size, free = bytes_of(path), free_main_memory()
    if size > free:
        message = f"{name} has {in_words(size)}, and {in_words(free)} of memory are free."
        raise LoadError("out_of_memory", message, "Use a copy with fewer bits, or close what else uses this memory.")


def _unreadable(name: str, reason: str) -> LoadError:
    return LoadError("load_failed", f"{name} cannot be read as a GGUF file: {reason.rstrip('.')}.", CHECK_COPY)


def _not_exact(trial: Trial, passes: Passes) -> str | None:
    """Return why drafts may change the text, as a sentence; None where they do not."""
    if passes == AUTO:
        return (
            f"This model is not run exactly, as its passes are {trial.cost:.2f} times as fast that way: at near ties "
            "drafts may change the text; --passes exact avoids that."
        )
    if not trial.moved:
        return None
    return (
        f"Passes of up to {MOST_SLOTS} tokens move this model's logits by up to {trial.moved:.2g}, so at near ties "
        "drafts may change the text."
    )
