"""Loads a model: a GGUF file as it is, where llama.cpp is installed, any other checkpoint by transformers."""

from collections.abc import Sequence
from pathlib import Path

from ladechat.model.checkpoint.faults import faults_said
from ladechat.model.checkpoint.fetch import stays_packed
from ladechat.model.checkpoint.files import is_gguf
from ladechat.model.kernels.build import Build
from ladechat.model.load_packed import Passes, check_options, load_packed
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.progress import FractionProgress, Report
from ladechat.model.parallel.workers import Workers
from ladechat.model.runners.out_of_memory import memory_is_used_up


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
    passes: Passes = "auto",
    packed: bool | None = None,
) -> LoadedModel:
    """Load a checkpoint, safetensors or GGUF, without running code that comes with it.

    Args:
        folder: the folder of its files, or the GGUF file (see `ladechat.model.checkpoint.fetch`).
        name: its name in messages.
        device: "auto", or torch's name of a device.
        dtype: "auto", or torch's name of a floating-point type.
        report: called with each stage.
        progress: called with the fraction of the weights that is read.
        workers: the other processes that compute with the model, if there are any.
        quantize: how its weights are quantised while they are read: "int8" or "int4"; None: not at all.
        kernels: the kernels for a model in float32 on a CPU; None leaves it to torch.
        maps: files of trained maps and heads, named by the user.
        passes: how llama.cpp computes passes, see `ladechat.model.load_packed`.
        packed: whether llama.cpp runs a GGUF file as it is; None: where it is installed. Otherwise transformers
            unpacks it.

    Raises:
        LoadError: it cannot be loaded; the message says why.
    """
    with faults_said(name, memory_is_used_up):
        if stays_packed(folder) if packed is None else packed and is_gguf(folder):
            check_options(name, dtype, quantize, workers.option if workers else None, maps)
            return load_packed(folder, name, device, passes, report, progress, kernels)
        from ladechat.model.load_checkpoint import load_checkpoint  # and with it transformers: seconds, and 150 MB

        return load_checkpoint(folder, name, device, dtype, report, progress, workers, quantize, kernels, maps)
