"""Reads the weights of a checkpoint into a model, on its device."""

from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from transformers import AutoModelForCausalLM, GgufConfig, PreTrainedModel, modeling_gguf_pytorch_utils
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.integrations import peft
from transformers.integrations.gguf import GGUF_ARCHS
from transformers.modeling_gguf_pytorch_utils import TensorProcessor, get_gguf_hf_weights_map
from transformers.models.auto import auto_factory
from transformers.utils import logging
from transformers.utils.import_utils import is_accelerate_available

from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import ADAPTER, ADAPTER_WEIGHTS, LoadError, is_gguf, weight_files
from ladechat.model.checkpoint.gguf_file import GgufFile, read_gguf, unreadable
from ladechat.model.checkpoint.gguf_file import check_tensors as check_gguf_tensors
from ladechat.model.loading.config import read_config
from ladechat.model.loading.generation import generation_config
from ladechat.model.loading.gguf_config import gguf_config
from ladechat.model.loading.tensors import FILES_HINT, check_tensors
from ladechat.model.loading.weight_only import weight_only_config
from ladechat.model.runners.out_of_memory import memory_is_used_up

FractionProgress = Callable[[float], None]
"""Called with the fraction that is done, 0 to 1."""

BAR_OF_WEIGHTS = "Loading weights"
"""transformers' label of its progress bar for reading weights."""


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
        quantize: how plain weights are quantised while they are read, see `ladechat.model.loading.weight_only`.

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
        reporting = _reporting_unpacking(progress) if packed else _reporting(progress)
        with reporting, _without_adapters():
            try:
                model, found = read(folder, attn_implementation="sdpa", **options)
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
def _reporting(progress: FractionProgress) -> Iterator[None]:
    """Report the progress that transformers would show with a progress bar."""

    def bar(factory: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if options.get("desc") == BAR_OF_WEIGHTS and arguments and isinstance(arguments[0], Sized):
            return _counted(arguments[0], progress)
        return factory(*arguments, **options)

    before = logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


@contextmanager
def _without_adapters() -> Iterator[None]:
    """Make transformers ignore an adapter beside the weights, as it does where peft is not installed."""
    modules: list[Any] = [auto_factory, peft]
    before = [module.is_peft_available for module in modules]
    for module in modules:
        module.is_peft_available = lambda *_: False
    try:
        yield
    finally:
        for module, found in zip(modules, before, strict=True):
            module.is_peft_available = found


def adapter_notice(folder: Path) -> str | None:
    """Return a notice about an adapter (LoRA) beside the weights of a checkpoint; None where there is none."""
    found = next(
        (file for file in (ADAPTER_WEIGHTS, ADAPTER) if not is_gguf(folder) and (folder / file).exists()), None
    )
    if found is None:
        return None
    return f"The adapter beside its weights ({found}) is left out; merge it into them to compute with it."


def _unpacking(file: GgufFile) -> dict[str, Any]:
    """Return arguments that make transformers unpack a GGUF file. Refuse one with tensors that do not fit the model."""
    config = gguf_config(file)
    if file.architecture not in GGUF_ARCHS:  # those are read without skipping tensors silently
        check_gguf_tensors(file, *_places(file, config))
    how = GgufConfig(gguf_file=str(file.path), dequantize=True)
    return {"gguf_file": str(file.path), "config": config, "quantization_config": how}


def _places(file: GgufFile, config: Any) -> tuple[dict[str, str], dict[str, int]]:
    """Return the weight of which each tensor of a file is a part, and the number of elements of each weight."""
    rules: Any = modeling_gguf_pytorch_utils.TENSOR_PROCESSORS
    names: Any = get_gguf_hf_weights_map  # which transformers leaves untyped
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        rule = rules.get(file.architecture, TensorProcessor)
        places: dict[str, str] = names(model, rule(config=config.to_dict()))
    except Exception as error:  # on files written by others the libraries may raise anything
        raise unreadable(file, error) from error
    return places, {name: weight.numel() for name, weight in model.state_dict().items()}


@contextmanager
def _reporting_unpacking(progress: FractionProgress) -> Iterator[None]:
    """Report progress like `_reporting`, for GGUF files, whose progress bar does not use transformers' hook."""
    reader: Any = modeling_gguf_pytorch_utils
    before = reader.tqdm
    reader.tqdm = lambda tensors, **_: _counted(tensors, progress)
    try:
        yield
    finally:
        reader.tqdm = before


def _counted(items: Any, progress: FractionProgress) -> Iterator[Any]:
    for index, item in enumerate(items):
        progress(index / len(items))
        yield item
    progress(1.0)
