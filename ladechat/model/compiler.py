"""The program that compiles passes of a model.

Run as `python -m ladechat.model.compiler CHECKPOINT INTO DTYPE THREADS SLOTS …`. It ends when its standard input does:
with the engine that started it.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.model.cache_probe import probe_cache
from ladechat.model.compiled import (
    FOLDERS_KEPT,
    SLOT_COUNTS,
    CompiledPasses,
    SlotPass,
    folder_for,
    package_of,
)
from ladechat.model.eager import EagerRunner
from ladechat.model.stepwise import StepwiseRunner
from ladechat.model.weights import load_weights

EXAMPLE_CACHED = 300
"""Cached tokens of the inputs that a pass is traced with; it then takes any number."""

LOG = "compiler.log"

Compiling = subprocess.Popen[bytes]
"""A process that compiles, as long as somebody keeps its input open."""

HOW: dict[str, Any] = {
    "freezing": True,  # weights in the order in which they are read
    "max_autotune": True,  # products of a few rows with a matrix: what is fastest here
    "max_autotune_gemm_backends": "CPP,ATEN",
    "compile_threads": 1,
}
"""How torch's compiler is asked to go about it."""


def use_compiled(runner: EagerRunner | StepwiseRunner, checkpoint: Path, passes: str) -> Compiling | None:
    """Let a runner use compiled passes, where they are for its model.

    Args:
        runner: of the model of the checkpoint.
        checkpoint: the folder that the model was loaded from.
        passes: "compile" what is missing, in the background; use those that are there already, "compiled"; or "eager".

    Returns:
        The process that compiles, if one was started.
    """
    if passes == "eager" or not isinstance(runner, EagerRunner) or not runner.compilable:
        return None
    folder = folder_for(runner.model, checkpoint)
    runner.compiled = CompiledPasses(folder)
    return start(checkpoint, folder, runner.model.dtype) if passes == "compile" else None


def start(checkpoint: Path, into: Path, dtype: torch.dtype) -> Compiling | None:
    """Compile all passes of a checkpoint in a process of its own, which ends with this one.

    Returns:
        The process; None if there is nothing left to compile, or no compiler.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    missing = [slots for slots in SLOT_COUNTS if not package_of(into, slots).exists()]
    if not missing or shutil.which(compiler) is None:
        return None
    into.mkdir(parents=True, exist_ok=True)
    _make_room(into.parent)
    what = [checkpoint, into, str(dtype).removeprefix("torch."), torch.get_num_threads(), *missing]
    with (into / LOG).open("ab") as log:
        return subprocess.Popen(
            ["nice", "-n", "19", sys.executable, "-m", "ladechat.model.compiler", *map(str, what)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def main(checkpoint: Path, into: Path, dtype: torch.dtype, threads: int, slot_counts: Sequence[int]) -> None:
    """Compile the passes of so many slots, unless another process is at it."""
    torch.set_num_threads(threads)
    lock = (into / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    cpu = torch.device("cpu")
    model = load_weights(checkpoint, checkpoint.name, cpu, dtype, quantised=False, progress=lambda _: None)
    model.requires_grad_(False)
    for slots in slot_counts:
        compile_pass(model, slots, into)


def compile_pass(model: PreTrainedModel, slots: int, into: Path) -> None:
    """Export the pass of so many slots, compile it and put it in its place."""
    layers = probe_cache(model)
    kinds = list(dict.fromkeys(layer.kind for layer in layers))
    total = EXAMPLE_CACHED + slots
    masks = [torch.ones(1, 1, slots, total, dtype=torch.bool) for _ in kinds]
    rows = [
        torch.zeros(total, heads, head_dim, dtype=layer.dtype)
        for layer in layers
        for heads, head_dim in (layer.keys, layer.values)
    ]
    tokens = torch.zeros(1, slots, dtype=torch.long)
    length = torch.export.Dim.AUTO
    shapes = (None, None, [{3: length} for _ in masks], [{0: length} for _ in rows])
    with torch.no_grad():
        exported = torch.export.export(
            SlotPass(model, kinds), (tokens, tokens.clone(), masks, rows), dynamic_shapes=shapes, strict=False
        )
    half_done = into / f"{slots}.half.pt2"
    torch._inductor.aoti_compile_and_package(
        exported,
        package_path=str(half_done),
        inductor_configs=HOW,
    )
    half_done.rename(package_of(into, slots))


def _make_room(folders: Path) -> None:
    """Leave only the folders that were used last."""
    by_use = sorted(folders.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_use[FOLDERS_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_the_input() -> None:
    """End this process and those that it has started, a compiler among them, when nobody holds its input any more."""
    # Not through `sys.stdin`: a thread that waits in its buffer would bring the end of the program down.
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    _, source, target, number_type, threads, *slot_counts = sys.argv
    main(Path(source), Path(target), getattr(torch, number_type), int(threads), [int(slots) for slots in slot_counts])
