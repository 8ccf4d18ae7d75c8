"""Reads the weights of a checkpoint into a model, on its device, and checks that they are those of the model."""

import ctypes
import logging
import re
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from transformers import AutoModelForCausalLM, GgufConfig, PreTrainedModel, modeling_gguf_pytorch_utils
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.integrations import peft
from transformers.integrations.gguf import GGUF_ARCHS
from transformers.modeling_gguf_pytorch_utils import TensorProcessor, get_gguf_hf_weights_map
from transformers.models.auto import auto_factory
from transformers.utils import logging as transformers_logging
from transformers.utils.import_utils import is_accelerate_available

from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import ADAPTER, ADAPTER_WEIGHTS, LoadError, is_gguf, weight_files
from ladechat.model.kernels.soft_cap import attention_for
from ladechat.model.loading.config import read_config
from ladechat.model.loading.generation_config import generation_config
from ladechat.model.loading.gguf_file import (
    GgufFile,
    check_tensors as check_gguf_tensors,
    gguf_config,
    read_gguf,
    unreadable,
)
from ladechat.model.loading.progress import FractionProgress
from ladechat.model.loading.quantization import weight_only_config
from ladechat.model.runners.out_of_memory import memory_is_used_up

BAR_OF_WEIGHTS = "Loading weights"
"""transformers' label of its progress bar for reading weights."""

FILES_HINT = "Check that all files of the checkpoint are there and complete."

COMPUTED_ELSEWHERE = re.compile(
    r"(inv_freq|freqs_cis|(cos|sin)_cached|position_ids|masked_bias|(attn|attention)\.bias|causal_mask|[qkv]_scale)$"
)
"""Tables that transformers computes itself but older versions saved, and the scales of an 8-bit KV cache."""

M_MMAP_THRESHOLD = -3
"""glibc's option: freed blocks of at least this size go back to the system."""
WHILE_READING, AFTERWARDS = 1 << 20, 32 << 20
"""Its values: glibc itself raises it to the second as large blocks are freed, so that passes reuse memory."""

logger = logging.getLogger(__name__)


def load_weights(
    folder: Path,
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    quantised: bool,
    progress: FractionProgress,
    mesh: DeviceMesh | None = None,
    quantize: str | None = None,
) -> PreTrainedModel:
    """Return the model of a checkpoint in evaluation mode, from safetensors or GGUF, without running code from it.

    Args:
        folder: its files, or the GGUF file.
        name: its name in messages.
        device: the device for the model.
        dtype: the type to which its weights are converted, except packed ones.
        quantised: whether some are packed: such a model is read straight to its device, and not moved.
        progress: called with the fraction of the weights that is read.
        mesh: the mesh of the processes that share the model, if there are several: this process then reads its shard.
        quantize: how plain weights are quantised while they are read, see `ladechat.model.loading.quantization`.

    Raises:
        LoadError: it cannot be loaded, or its files or weights are not those of the model (see `check_tensors`).
    """
    options: dict[str, Any] = {
        "dtype": dtype,
        "use_safetensors": True,
        "trust_remote_code": False,
        "local_files_only": True,
        "ignore_mismatched_sizes": True,  # reported below, with the missing ones
        "output_loading_info": True,
    }
    if quantize is not None:
        options["quantization_config"] = weight_only_config(quantize)
    packed = is_gguf(folder)
    if packed:
        options |= _unpacking(read_gguf(folder, name))
    else:
        weight_files(folder)  # refuses an index that leads out of the folder
        options["config"] = read_config(folder)
    options["generation_config"] = generation_config(folder, options["config"])
    folder = folder.parent if packed else folder
    # Straight to its device, without main memory. transformers needs accelerate for that.
    placed = is_accelerate_available() and (quantised or quantize is not None or device.type != "cpu")
    if mesh is not None:
        options |= {"distributed_config": DistributedConfig(tp_size=mesh.size(), tp_plan="auto"), "device_mesh": mesh}
        placed = True
    elif placed:
        options["device_map"] = str(device)
    read: Any = AutoModelForCausalLM.from_pretrained  # its type ignores `output_loading_info`
    model: PreTrainedModel
    try:
        # An adapter beside the weights is ignored, as where peft is not installed.
        with _reporting(progress, packed), _replaced("is_peft_available", lambda *_: False, auto_factory, peft):
            try:
                model, found = read(folder, attn_implementation=attention_for(options["config"]), **options)
            except ValueError:  # the architecture has no SDPA attention
                model, found = read(folder, attn_implementation="eager", **options)
        if not placed:
            model.to(device)  # type: ignore[arg-type]  # its decorator hides that it is bound
        model.eval()
    except Exception as error:  # on files written by others the libraries may raise anything
        if memory_is_used_up(error):
            message = f"{name} does not fit the memory of {device} as {str(dtype).removeprefix('torch.')}."
            ways = "Try --dtype bfloat16, --device cpu, or a smaller model."
            raise LoadError("out_of_memory", message, ways) from error
        raise LoadError("load_failed", f"{name} cannot be loaded: {first_sentence(error)}", FILES_HINT) from error
    check_tensors(name, model, found, quantised or packed)
    return model


@contextmanager
def _reporting(progress: FractionProgress, unpacking: bool) -> Iterator[None]:
    """Report the progress that transformers would show with a progress bar."""

    def bar(factory: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if not unpacking and options.get("desc") == BAR_OF_WEIGHTS and arguments and isinstance(arguments[0], Sized):
            return _counted(arguments[0], progress)
        return factory(*arguments, **options)

    before = transformers_logging.set_tqdm_hook(bar)
    try:  # the progress bar of GGUF files does not use that hook
        with _replaced("tqdm", lambda tensors, **_: _counted(tensors, progress), modeling_gguf_pytorch_utils):
            yield
    finally:
        transformers_logging.set_tqdm_hook(before)


@contextmanager
def _replaced(name: str, value: Any, *modules: Any) -> Iterator[None]:
    """Give a name another value in these modules meanwhile."""
    before = [getattr(module, name) for module in modules]
    try:
        for module in modules:
            setattr(module, name, value)
        yield
    finally:
        for module, found in zip(modules, before, strict=True):
            setattr(module, name, found)


def adapter_notice(folder: Path) -> str | None:
    """Return a notice about an adapter (LoRA) beside the weights of a checkpoint; None where there is none."""
    for file in (ADAPTER_WEIGHTS, ADAPTER):
        if not is_gguf(folder) and (folder / file).exists():
            return f"The adapter beside its weights ({file}) is left out; merge it into them to compute with it."
    return None


def _unpacking(file: GgufFile) -> dict[str, Any]:
    """Return arguments that make transformers unpack a GGUF file. Refuse one with tensors that do not fit the model."""
    config = gguf_config(file)
    if file.architecture not in GGUF_ARCHS:  # those are read without skipping tensors silently
        rules: Any = modeling_gguf_pytorch_utils.TENSOR_PROCESSORS
        names: Any = get_gguf_hf_weights_map  # which transformers leaves untyped
        try:
            with torch.device("meta"):
                model = AutoModelForCausalLM.from_config(config)
            places = names(model, rules.get(file.architecture, TensorProcessor)(config=config.to_dict()))
        except Exception as error:  # on files written by others the libraries may raise anything
            raise unreadable(file, error) from error
        check_gguf_tensors(file, places, {name: weight.numel() for name, weight in model.state_dict().items()})
    how = GgufConfig(gguf_file=str(file.path), dequantize=True)
    return {"gguf_file": str(file.path), "config": config, "quantization_config": how}


def _counted(items: Any, progress: FractionProgress) -> Iterator[Any]:
    for index, item in enumerate(items):
        progress(index / len(items))
        yield item
    progress(1.0)


def check_tensors(name: str, model: PreTrainedModel, found: Any, packed: bool) -> None:
    """Refuse a loaded model that is not the one in its checkpoint, or that cannot compute.

    `found` is transformers' loading info; `packed` weights are quantised, or unpacked from a GGUF file.

    Raises:
        LoadError: tensors are missing, have another shape, are left over (see `belongs_to_the_model`), or not finite.
    """
    wrong = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})
    if wrong:  # transformers fills these with random numbers
        message = f"{name} lacks {len(wrong)} of the weights that its config.json describes, such as {wrong[0]}."
        raise LoadError("load_failed", message, FILES_HINT)
    unused = sorted(found["unexpected_keys"])
    left_over = [key for key in unused if belongs_to_the_model(key, model, packed)]
    if left_over:
        what = f"{len(left_over)} weights that its config.json does not describe, such as {left_over[0][:80]!r}"
        hint = "Check num_hidden_layers and the other numbers in its config.json, or use another copy of the model."
        raise LoadError("load_failed", f"{name} has {what}: without them another model would be computed.", hint)
    if unused:
        logger.warning("%s: %d tensors of the checkpoint are not used, such as %r", name, len(unused), unused[0][:80])
    _check_finite(name, model)


def belongs_to_the_model(key: str, model: PreTrainedModel, packed: bool = False) -> bool:
    """Return whether a tensor without a place in the model belongs to it, so that it computes something else without.

    - In a layer beyond the last: yes, its config.json counts too few layers. Except the drafting layers that DeepSeek
      and GLM save after the others; config.json counts them as `num_nextn_predict_layers`.
    - In a layer, or in a module with weights of its own, such as a bias that config.json disables: yes. Except in
      packed weights, whose formats save more than needed (a bias of zeros, scales).
    - Computed by transformers itself, such as rotary frequencies and causal masks: no.
    - In modules that the model does not have, such as drafting layers (`mtp`), a value head or a vision encoder: no.
    """
    if COMPUTED_ELSEWHERE.search(key):
        return False
    return any(_is_inside(key, root, packed) for root in (model, model.base_model))


def _is_inside(key: str, module: Any, packed: bool) -> bool:
    *path, _ = key.split(".")
    drafting = getattr(module.config.get_text_config(), "num_nextn_predict_layers", None) or 0
    in_layer = False
    for part in path:
        is_list = isinstance(module, nn.ModuleList)
        if is_list and part.isdecimal() and int(part) >= len(module):
            return int(part) >= len(module) + drafting
        in_layer |= is_list
        if part not in module._modules:
            return in_layer and not packed
        module = module._modules[part]
    return not packed and (in_layer or any(True for _ in module.parameters(recurse=False)))


@torch.no_grad()
def _check_finite(name: str, model: PreTrainedModel) -> None:
    """Refuse NaN and infinite weights. A bias of the output layer may be -inf, which disables a token."""
    switches = getattr(model.get_output_embeddings(), "bias", None)
    for weight_name, weight in model.named_parameters():
        plain = type(weight.data) is torch.Tensor and weight.dtype.itemsize > 1 and weight.is_floating_point()
        if not plain or not weight.numel() or weight.device.type == "meta":
            continue
        highest, lowest = weight.amax().item(), weight.amin().item()  # NaN if one of the weights is
        if abs(highest) < float("inf") and (abs(lowest) < float("inf") or weight is switches):
            continue
        kind = str(weight.dtype).removeprefix("torch.")
        message = f"{name} has weights that are no finite numbers (NaN or infinite), as {kind}, such as {weight_name}."
        hint = "Use another copy of the model; if it was loaded as float16, in which large numbers overflow, bfloat16."
        raise LoadError("load_failed", message, hint)


@contextmanager
def freed_at_once() -> Iterator[None]:
    """Return the memory of each matrix to the system once it is quantised or packed.

    glibc would retain it in its heaps: 205 million parameters, quantised from float32, held 936 MB after loading, and
    214 MB with this. Does nothing with another C library.
    """
    set_option: Any = getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)
    set_option(M_MMAP_THRESHOLD, WHILE_READING)
    try:
        yield
    finally:
        set_option(M_MMAP_THRESHOLD, AFTERWARDS)
