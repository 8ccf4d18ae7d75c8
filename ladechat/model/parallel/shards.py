"""Which device and which shard of a model each of several processes gets, and how the processes connect.

In tensor parallelism, by transformers' plan for the model's type, each has a part of the heads and of the MLP's inner
columns of every layer; the partial results of both are summed (Shoeybi et al. 2019, Megatron-LM). In lookahead
parallelism the shard is the whole model.
"""

import contextlib
import os
import re
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from transformers import AutoModelForCausalLM
from transformers.utils.import_utils import is_accelerate_available

from ladechat.installing import command_for_extra
from ladechat.model.checkpoint.files import LoadError, in_words
from ladechat.model.loading.memory import free_memory
from ladechat.model.loading.needed_memory import weight_bytes
from ladechat.private_folder import NotPrivate, private_folder, private_path

OPTION = "--tensor-parallel"
"""The option that sentences about heads, columns and shards name: these exist in tensor parallelism only."""
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"

SECONDS_OF_A_GROUP = 30 * 24 * 3600.0
"""The age at which the file of a process group is removed, if its processes did not do so when they ended."""

FAULTY_PLANS = ("doge", "granite_swa", "granitemoe_swa", "hrm_text", "hy_v4", "llama4", "llama4_text", "mimo_v2_flash")
"""Model types whose plan in transformers 5.17 makes them fail, or (hrm_text) compute something else."""

WHOLE = ("mla_kv_a_proj", "replicated_with_grad_allreduce", "sequence_parallel")
"""Entries of a plan that leave each process the whole parameter."""


@dataclass(frozen=True)
class Shard:
    """The facts with which a process loads its shard.

    Attributes:
        folder, name, dtype, context_length: as determined by rank 0.
        device: the device for this shard.
        rank: the number of this process; 0 is the engine.
        processes: the number of processes.
        whole: whether it is the whole model.
        store: the file in which the processes find each other, see `meeting_place`.
    """

    folder: Path
    name: str
    dtype: torch.dtype
    context_length: int
    device: torch.device
    rank: int
    processes: int
    whole: bool
    store: Path


def devices_for(processes: int, wanted: str, option: str) -> list[torch.device]:
    """Return the device of each process: a separate GPU, or the CPU if requested. `option` is named in messages.

    Raises:
        LoadError: there are fewer GPUs, or another device is requested.
    """
    if wanted == "cpu":
        return [torch.device("cpu")] * processes
    if wanted not in ("auto", "cuda"):
        message = f"{option} shares the work among GPUs of one machine, and {wanted!r} does not name those."
        hint = "Use --device auto, cuda or cpu; CUDA_VISIBLE_DEVICES says which GPUs torch sees."
        raise LoadError("load_failed", message, hint)
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found < processes:
        there = "is one" if found == 1 else f"are {found}" if found else "is none"
        message = f"{option} {processes} needs {processes} GPUs that torch can use, and there {there} here."
        raise LoadError("load_failed", message, f"Use a smaller number, or leave {option} out.")
    return [torch.device("cuda", index) for index in range(processes)]


def check_shards(
    folder: Path, name: str, config: Any, devices: list[torch.device], dtype: torch.dtype, cache_bytes: int
) -> None:
    """Refuse a model that cannot be shared this way, or whose shards do not fit.

    Raises:
        LoadError: it is refused; the message says why.
    """
    processes, text = len(devices), config.get_text_config()
    if not is_accelerate_available():
        hint = f"Install it beside ladechat: {command_for_extra('tensor-parallel')}"
        message = f"{OPTION} needs the package accelerate, for transformers loads shards with it, and that is not here."
        raise LoadError("missing_package", message, hint)
    _check_plain(name, config, OPTION)
    if not getattr(text, "base_model_tp_plan", None):
        message = f"transformers has no plan how to share a model of type {config.model_type!r} among processes."
        raise LoadError("unsupported_architecture", message, f"Leave {OPTION} out, or use another model.")
    if {config.model_type, text.model_type} & set(FAULTY_PLANS):
        kind = f"a model of type {config.model_type!r}"
        message = f"Shared by transformers' plan, {kind} does not compute what it should."
        raise LoadError("unsupported_architecture", message, f"Leave {OPTION} out, or use another model.")
    queries = getattr(text, "num_attention_heads", None)
    divided = {
        "attention heads": queries,
        "key/value heads": getattr(text, "num_key_value_heads", None) or queries,
        "inner columns in a layer": getattr(text, "intermediate_size", None),
        "tokens in its vocabulary": text.vocab_size,
    }
    for what, count in divided.items():
        if isinstance(count, int) and count % processes:
            message = f"{name} has {count} {what}, which cannot be divided among {processes} processes."
            raise LoadError("load_failed", message, f"Use {OPTION} with a number that divides it.")
    weights = int(weight_bytes(folder, dtype)[0] * share_of_each(config, processes))
    parts = f"{processes} shards, {in_words(weights)} of weights in each as {str(dtype).removeprefix('torch.')}"
    _check_fit(name, devices, weights + cache_bytes // processes, parts, "Share it among more GPUs")


def check_copies(
    folder: Path, name: str, config: Any, devices: list[torch.device], dtype: torch.dtype, cache_bytes: int, option: str
) -> None:
    """Refuse a model that not every process can hold as a whole.

    Raises:
        LoadError: it is refused; the message says why.
    """
    _check_plain(name, config, option)
    weights = weight_bytes(folder, dtype)[0]
    parts = f"{len(devices)} copies, {in_words(weights)} of weights in each as {str(dtype).removeprefix('torch.')}"
    _check_fit(name, devices, weights + cache_bytes, parts, f"Use {OPTION} in its place")


def _check_plain(name: str, config: Any, option: str) -> None:
    if any(getattr(one, "quantization_config", None) for one in (config, config.get_text_config())):
        message = f"{name} is quantised, and {option} shares plain weights only."
        raise LoadError("load_failed", message, f"Use a copy that is not quantised, or leave {option} out.")


def _check_fit(name: str, devices: list[torch.device], bytes_of_each: int, parts: str, way_out: str) -> None:
    for device in dict.fromkeys(devices):
        needed, free = devices.count(device) * bytes_of_each, free_memory(device)  # on a CPU all share the memory
        if free is not None and needed > free:
            message = f"{name} needs {in_words(needed)} of memory on {device} ({parts}), and {in_words(free)} are free."
            hint = f"{way_out}, use a smaller model, or close what else uses this memory."
            raise LoadError("out_of_memory", message, hint)


def share_of_each(config: Any, processes: int) -> float:
    """Return the share of a model's weights in each process. Weights outside the plan, as embeddings, count whole."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    held = 0.0
    for name, size in sizes.items():  # a plan names the parameter or its module, with * for a layer's number
        name = re.sub(r"\.\d+(?=\.|$)", ".*", name)
        way = model.tp_plan.get(name) or model.tp_plan.get(name.rpartition(".")[0])
        held += size if way is None or way in WHOLE else size / processes
    return float(held / sum(sizes.values()))


def shards_of(
    folder: Path, name: str, devices: list[torch.device], dtype: torch.dtype, context_length: int, whole: bool
) -> list[Shard]:
    """Return the shard of each process, that of rank 0 first; if `whole`, each is the model.

    Raises:
        LoadError: there is no private folder in which the processes can find each other.
    """
    store = meeting_place(private_path("groups"))
    return [
        Shard(folder, name, dtype, context_length, device, rank, len(devices), whole, store)
        for rank, device in enumerate(devices)
    ]


def meeting_place(folder: Path) -> Path:
    """Return the name of a new file in a private folder, by which the processes find each other.

    torch's usual store is a port of this machine, at which any user may read and change the processes' messages. Files
    of earlier groups are removed.

    Raises:
        LoadError: the folder is not private.
    """
    try:
        folder = private_folder(folder)
    except NotPrivate as error:
        message = f"The processes that share a model find each other in a folder of their own, and {error}"
        hint = "Set XDG_CACHE_HOME to a folder of yours, or use one process."
        raise LoadError("load_failed", message, hint) from error
    for old in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > SECONDS_OF_A_GROUP:
                old.unlink()
    return folder / secrets.token_hex(16)


def join_group(shard: Shard) -> DeviceMesh | None:
    """Join the process group, and wait for all processes. Return their mesh, if the model is divided among them.

    Whole models exchange few numbers, which the CPU reads: by gloo on any device.
    """
    # gloo cannot be reached from other machines.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    os.environ["LOCAL_RANK"] = str(shard.device.index or 0)  # transformers takes the device's index from it
    store = distributed.FileStore(  # type: ignore[attr-defined]  # documented, but not marked as exported
        str(shard.store), shard.processes
    )
    gpu = shard.device if shard.device.type == "cuda" else None
    if gpu is not None:
        torch.cuda.set_device(gpu)
    backend, bound = ("gloo", None) if shard.whole or gpu is None else ("nccl", gpu)
    distributed.init_process_group(backend, store=store, rank=shard.rank, world_size=shard.processes, device_id=bound)
    return None if shard.whole else init_device_mesh(shard.device.type, (shard.processes,))
