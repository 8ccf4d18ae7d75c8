"""Reads the weights of a checkpoint into a model, where it shall run."""

from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.utils import logging
from transformers.utils.import_utils import is_accelerate_available

from ladechat.model.checkpoint import LoadError, first_sentence
from ladechat.model.memory import memory_is_used_up
from ladechat.model.weight_only import freed_at_once, weight_only_config

FractionProgress = Callable[[float], None]
"""Told again and again how far something is, 0 to 1."""

BAR_OF_WEIGHTS = "Loading weights"
"""What transformers calls the progress of reading weights."""


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
    """The model of a checkpoint in evaluation mode, from safetensors only, running no code that comes with it.

    Args:
        folder: its files.
        name: what it is called in messages.
        device: where it shall be.
        dtype: what its weights are converted to, those that are not packed.
        quantised: whether some are: such a model is put where it shall be while it is read, and not moved.
        progress: told how many of the weights are read.
        mesh: of the processes that share the model, if there are several: this one then reads its shard.
        quantize: how plain weights are quantised while they are read, see `ladechat.model.weight_only`.

    Raises:
        LoadError: it cannot be loaded, or files or weights are missing.
    """
    hint = "Check that all files of the checkpoint are there and complete."
    options: dict[str, Any] = {
        "dtype": dtype,
        "use_safetensors": True,
        "trust_remote_code": False,
        "local_files_only": True,
        "ignore_mismatched_sizes": True,  # told of below, with the missing ones
        "output_loading_info": True,
    }
    if quantize is not None:
        options["quantization_config"] = weight_only_config(quantize)
    # Straight to its place, which takes no main memory. transformers wants accelerate for that.
    placed = is_accelerate_available() and (quantised or quantize is not None or device.type != "cpu")
    if mesh is not None:
        options |= {"distributed_config": DistributedConfig(tp_size=mesh.size(), tp_plan="auto"), "device_mesh": mesh}
        placed = True
    elif placed:
        options["device_map"] = str(device)
    read: Any = AutoModelForCausalLM.from_pretrained  # whose type leaves out what `output_loading_info` adds
    model: PreTrainedModel
    try:
        with _told_of(progress), freed_at_once() if quantize is not None else nullcontext():
            try:
                model, found = read(folder, attn_implementation="sdpa", **options)
            except ValueError:  # the architecture has no SDPA attention
                model, found = read(folder, attn_implementation="eager", **options)
        if not placed:
            model.to(device)  # type: ignore[arg-type]
        model.eval()
    except Exception as error:  # reading what others wrote, the libraries raise anything
        if memory_is_used_up(error):
            message = f"{name} does not fit the memory of {device} as {str(dtype).removeprefix('torch.')}."
            ways = "Try --dtype bfloat16, --device cpu, or a smaller model."
            raise LoadError("out_of_memory", message, ways) from error
        raise LoadError("load_failed", f"{name} cannot be loaded: {first_sentence(error)}", hint) from error
    wrong = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})
    if wrong:  # transformers fills these with random numbers
        message = f"{name} lacks {len(wrong)} of the weights that its config.json describes, such as {wrong[0]}."
        raise LoadError("load_failed", message, hint)
    return model


@contextmanager
def _told_of(progress: FractionProgress) -> Iterator[None]:
    """Count what transformers would show with a bar."""

    def bar(factory: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if options.get("desc") == BAR_OF_WEIGHTS and arguments and isinstance(arguments[0], Sized):
            return _counted(arguments[0], progress)
        return factory(*arguments, **options)

    before = logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def _counted(items: Any, progress: FractionProgress) -> Iterator[Any]:
    for index, item in enumerate(items):
        progress(index / len(items))
        yield item
    progress(1.0)
