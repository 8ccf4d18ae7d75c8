"""Saves a training to a file, atomically: its tensors, the optimiser's averages, the step."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ladechat.files import replace_file
from ladechat.train.options import Recipe, TrainRefused, difference

FORMAT = "ladechat-checkpoint-1"
AVERAGES = ("exp_avg", "exp_avg_sq")
"""What AdamW stores for each tensor, in addition to the number of steps."""


def write_checkpoint(
    path: Path, recipe: Recipe, step: int, tensors: dict[str, Tensor], optimiser: torch.optim.Optimizer
) -> None:
    """Save a training atomically. The order of chunks and the anchors follow from the step.

    Raises:
        OSError: the file cannot be written, as on a full disk.
    """
    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        state = optimiser.state.get(tensor, {})
        content |= {f"{name}.{kind}": state[kind].cpu().contiguous() for kind in AVERAGES if kind in state}
    header = {"format": FORMAT, "recipe": json.dumps(asdict(recipe)), "step": str(step)}
    replace_file(path, save(content, header))


def read_checkpoint(path: Path, recipe: Recipe, tensors: dict[str, Tensor], optimiser: torch.optim.Optimizer) -> int:
    """Resume from a file: fill `tensors` and the optimiser.

    Returns:
        The step to continue with.

    Raises:
        TrainRefused: the file is damaged, or belongs to another recipe.
    """
    anew = "remove it to begin anew, or give --out another name"
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise TrainRefused(f"{path} is no checkpoint of a training; {anew}.")
            other = difference(recipe, header["recipe"])
            if other is not None:
                raise TrainRefused(f"{path} is of a training with another {other}; give the same options, {anew}.")
            step = int(header["step"])
            with torch.no_grad():
                for name, tensor in tensors.items():
                    tensor.copy_(file.get_tensor(name))
                    if step:
                        averages = {kind: file.get_tensor(f"{name}.{kind}").to(tensor.device) for kind in AVERAGES}
                        optimiser.state[tensor] = {"step": torch.tensor(float(step)), **averages}
    except TrainRefused:
        raise
    except (SafetensorError, KeyError, ValueError, RuntimeError, AttributeError) as error:
        raise TrainRefused(f"{path} is damaged, so the training cannot go on from it; {anew}.") from error
    except OSError as error:
        raise TrainRefused(f"{path} cannot be read: {error.strerror or error}; {anew}.") from error
    return step
