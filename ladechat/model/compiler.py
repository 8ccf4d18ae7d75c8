"""The program that compiles passes of a model.

Run as `python -m ladechat.model.compiler CHECKPOINT INTO DTYPE THREADS LEAST …`. It ends when its standard input does:
with the engine that started it.
"""

import contextlib
import fcntl
import itertools
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ladechat.decoder.runner import Runner
from ladechat.model import kernels
from ladechat.model.cache_probe import probe_cache
from ladechat.model.compiled import (
    FOLDERS_KEPT,
    KERNELS,
    LEAST_SLOTS,
    MOST_SLOTS,
    CompiledPasses,
    SlotPass,
    folder_for,
    library_of,
    load_pass,
    weights_of,
)
from ladechat.model.eager import EagerRunner
from ladechat.model.graphs import graph_passes
from ladechat.model.weights import load_weights

EXAMPLE_CACHED = 300
EXAMPLE_SLOTS = {1: 1, 2: 6}
"""Cached tokens and slots of the inputs that a pass is traced with; it then takes others too."""

COMPARED_CACHED = (1, 7, 333)
COMPARED_SLOTS = {1: (1,), 2: (2, 7, 32, MOST_SLOTS)}
TOLERANCE = 1e-3
"""Where a compiled pass is compared with the model, and how far it may be off: a wrong sum is off by much more, another
order of the same sums by much less."""

SPARE_PLACES = 9
"""Behind what a pass reads and writes: the cache has room for more."""

TIMED_SLOTS = {1: 1, 2: 8}
TIMED = 10
SLOWER = 1.1
"""Of so many slots a compiled pass is timed, so often, and so much longer than the model's it may take."""

WORK = "work"

LOG = "compiler.log"

Compiling = subprocess.Popen[bytes]
"""A process that compiles, as long as somebody keeps its input open."""

logger = logging.getLogger(__name__)

HOW: dict[str, Any] = {
    "aot_inductor.custom_ops_to_c_shims": {
        getattr(torch.ops.ladechat, name).default: [declaration] for name, declaration in kernels.DECLARATIONS.items()
    },
    # The engine has the weights: one copy, for all passes. Copies would push each other out of the processor's cache.
    "aot_inductor.package_constants_in_so": False,
    "compile_threads": 1,
}
"""How torch's compiler is asked to go about it."""


def use_compiled(runner: Runner, checkpoint: Path, passes: str) -> Compiling | None:
    """Let a runner use compiled passes, where they are for its model; on a CUDA device, recorded ones.

    Args:
        runner: of the model of the checkpoint.
        checkpoint: the folder that the model was loaded from.
        passes: "compile" what is missing, in the background; use those that are there already, "compiled"; or "eager".
            On a CUDA device both record passes, and "compile" has torch's compiler fuse their operations, at once.

    Returns:
        The process that compiles, if one was started.
    """
    if passes == "eager" or not isinstance(runner, EagerRunner):
        return None
    if runner.model.device.type == "cuda":
        runner.compiled = graph_passes(runner, compiling=passes == "compile")
    if not runner.compilable:
        return None
    folder = folder_for(runner.model)
    runner.compiled = CompiledPasses(folder, runner.model)
    runner.compiled.look()
    return start(checkpoint, folder, runner.model.dtype) if passes == "compile" else None


def start(checkpoint: Path, into: Path, dtype: torch.dtype) -> Compiling | None:
    """Compile all passes of a checkpoint in a process of its own, which ends with this one.

    Returns:
        The process; None if there is nothing left to compile, no compiler, or no place for what it would make.
    """
    missing = [least for least in LEAST_SLOTS if not _done(into, least)]
    if not missing or kernels.compiler() is None:
        return None
    what = [checkpoint, into, str(dtype).removeprefix("torch."), torch.get_num_threads(), *missing]
    work = str(into / WORK)
    try:
        (into / WORK).mkdir(parents=True, exist_ok=True)
        _make_room(into)
        with (into / LOG).open("wb") as log:
            return subprocess.Popen(
                ["nice", "-n", "19", sys.executable, "-m", "ladechat.model.compiler", *map(str, what)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # A group, to be ended as a whole, but no session: priorities count within one.
                process_group=0,
                env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": work, "TMPDIR": work},
            )
    except OSError as error:
        logger.warning("Passes are not compiled: %s", error)
        return None


def main(checkpoint: Path, into: Path, dtype: torch.dtype, threads: int, leasts: Sequence[int]) -> None:
    """Compile the passes of so many slots and more, unless another process is at it."""
    torch.set_num_threads(threads)
    lock = (into / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    cpu = torch.device("cpu")
    model = load_weights(checkpoint, checkpoint.name, cpu, dtype, quantised=False, progress=lambda _: None)
    if folder_for(model) != into:
        print("The checkpoint has changed since the engine loaded it.", file=sys.stderr)
        return
    model.requires_grad_(False)
    for least in leasts:
        try:
            _make_kernels(into, threads)
            compile_pass(model, least, into)
        except OSError:  # the disk is full, or the compiler was ended: another time it may do
            traceback.print_exc()
        except Exception:  # whatever the exporter or the compiler make of a model: it runs as it is
            traceback.print_exc()
            _failed(into, least).touch()
    shutil.rmtree(into / WORK, ignore_errors=True)


def compile_pass(model: PreTrainedModel, least: int, into: Path) -> None:
    """Export the pass of so many slots and more, compile it, compare it with the model, and put it in its place.

    Raises:
        ArithmeticError: it computes something else, or takes longer.
    """
    slot_pass = SlotPass(kernels.with_kernels(model), _kinds(model))
    arguments = _example(model, EXAMPLE_SLOTS[least], EXAMPLE_CACHED)
    any_number = torch.export.Dim.DYNAMIC
    slots = {} if least == 1 else {1: any_number}
    seen = {3: any_number} if least == 1 else {2: any_number, 3: any_number}
    shapes = (slots, slots, [seen for _ in arguments[2]], [{0: any_number} for _ in arguments[3]])
    with torch.no_grad():
        exported = torch.export.export(slot_pass, arguments, dynamic_shapes=shapes, strict=False)
    package = into / WORK / f"{least}.pt2"
    package.parent.mkdir(exist_ok=True)
    torch._inductor.aoti_compile_and_package(exported, package_path=str(package), inductor_configs=HOW)
    half_done = into / WORK / library_of(into, least).name
    with zipfile.ZipFile(package) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        half_done.write_bytes(archive.read(name))
    as_it_is, compiled = SlotPass(model, _kinds(model)), load_pass(half_done, weights_of(slot_pass))
    _compare(as_it_is, compiled, COMPARED_SLOTS[least])
    _race(as_it_is, compiled, TIMED_SLOTS[least])
    _put_in_place(half_done, into)


def _compare(slot_pass: SlotPass, compiled: Any, slot_counts: Sequence[int]) -> None:
    """Logits, keys and values of a compiled pass and of the model itself, for texts of several lengths."""
    for slots, cached in itertools.product(slot_counts, COMPARED_CACHED):
        theirs = _example(slot_pass.model, slots, cached)
        ours = _example(slot_pass.model, slots, cached)
        with torch.inference_mode():
            expected = slot_pass(*theirs)
            (logits,) = compiled.run([*ours[:2], *ours[2], *ours[3]])
        for mine, other in zip((logits, *ours[3]), (expected, *theirs[3]), strict=True):
            if not torch.allclose(mine, other, atol=TOLERANCE * float(other.abs().max()), rtol=TOLERANCE):
                raise ArithmeticError(f"The compiled pass of {slots} slots differs at {cached} cached tokens.")


def _race(slot_pass: SlotPass, compiled: Any, slots: int) -> None:
    """Whether a compiled pass is worth having: on another processor its kernels may be slower than the usual ones."""
    tokens, positions, masks, rows = _example(slot_pass.model, slots, EXAMPLE_CACHED)
    ways = {
        "as it is": lambda: slot_pass(tokens, positions, masks, rows),
        "compiled": lambda: compiled.run([tokens, positions, *masks, *rows]),
    }
    fastest = dict.fromkeys(ways, math.inf)
    with torch.inference_mode():
        for way in TIMED * list(ways):
            started = time.perf_counter()
            ways[way]()
            fastest[way] = min(fastest[way], time.perf_counter() - started)
    if fastest["compiled"] > SLOWER * fastest["as it is"]:
        raise ArithmeticError(f"Compiled, a pass of {slots} slots is slower: {fastest} seconds.")


def _make_kernels(into: Path, threads: int) -> None:
    """Build the kernels, if that is not done, and have the operators use them."""
    if not (into / KERNELS).exists():
        (into / WORK).mkdir(exist_ok=True)
        kernels.build(into / WORK / KERNELS, threads)
        _put_in_place(into / WORK / KERNELS, into)
    kernels.load(into / KERNELS)


def _put_in_place(half_done: Path, into: Path) -> None:
    """What others find is whole, even if the machine stops now."""
    with half_done.open("rb") as written:
        os.fsync(written.fileno())
    half_done.rename(into / half_done.name)


def _example(model: PreTrainedModel, slots: int, cached: int) -> tuple[Tensor, Tensor, list[Tensor], list[Tensor]]:
    """Arguments of a pass, always the same ones: tokens one behind the other, and a cache of small random numbers."""
    dice = torch.Generator().manual_seed(0)
    text = model.config.get_text_config(decoder=True)
    total = cached + slots
    tokens = torch.randint(text.vocab_size, (1, slots), generator=dice)
    visible = torch.ones(slots, total, dtype=torch.bool).tril(cached)[None, None]
    rows = [
        0.1 * torch.randn(total + SPARE_PLACES, heads, head_dim, generator=dice, dtype=layer.dtype)
        for layer in probe_cache(model)
        for heads, head_dim in (layer.keys, layer.values)
    ]
    masks = [visible.clone() for _ in _kinds(model)]
    for kind, mask in enumerate(masks):  # so that none can be left out, or taken for another
        mask[..., kind:cached:3] = False
    return tokens, torch.arange(cached, total)[None], masks, rows


def _kinds(model: PreTrainedModel) -> list[str]:
    """The kinds of layers that get masks of their own: one, where none has a window."""
    layers = probe_cache(model)
    kinds = list(dict.fromkeys(layer.kind for layer in layers))
    return kinds if any(layer.window for layer in layers) else kinds[:1]


def _done(folder: Path, least: int) -> bool:
    """Whether there is nothing left to do for a pass, or nothing that can be done."""
    return _failed(folder, least).exists() or all(
        path.exists() for path in (library_of(folder, least), folder / KERNELS)
    )


def _failed(folder: Path, least: int) -> Path:
    """Says that this pass cannot be compiled."""
    return folder / f"{least}.failed"


def _make_room(into: Path) -> None:
    """Leave only the folders that were used last, and this one."""
    others = [folder for folder in into.parent.iterdir() if folder.is_dir() and folder != into]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in others[FOLDERS_KEPT - 1 :]:
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
    _, source, target, number_type, threads, *leasts = sys.argv
    main(Path(source), Path(target), getattr(torch, number_type), int(threads), [int(least) for least in leasts])
