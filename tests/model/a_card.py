"""A card in place of which there is none: tensors say that they are on "cuda", and have shapes, types, no values.

torch's `FakeTensorMode` computes what each operation would return, and refuses one whose tensors are on two devices. So
a tensor that was left on the CPU is found on a machine without a GPU. Where a value has to be read, it is made up.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import safetensors
import torch
from numpy.typing import NDArray
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ladechat.model import load_checkpoint as loading, trained
from ladechat.model.load import load
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading import self_check

TOKENS = range(20, 26)
"""The tokens that are made up: few, so that guesses are right now and then."""


@contextlib.contextmanager
def as_if_on_a_card() -> Iterator[list[str]]:
    """Compute with fake tensors; yields the devices from which values were read, as they are read."""
    dice, read = random.Random(0), list[str]()

    def made_up(tensor: torch.Tensor) -> NDArray[Any]:
        read.append(tensor.device.type)
        if tensor.dtype is torch.bool:
            return np.ones(tuple(tensor.shape), np.bool_)
        numbers = np.array(dice.choices(TOKENS, k=tensor.numel())).reshape(tuple(tensor.shape))
        return numbers.astype(np.float32) if tensor.dtype.is_floating_point else numbers

    def reads(name: str, of_fake: Callable[[torch.Tensor], Any]) -> Any:
        real = getattr(torch.Tensor, name)

        def method(tensor: torch.Tensor, *arguments: Any) -> Any:
            return of_fake(tensor) if isinstance(tensor, FakeTensor) else real(tensor, *arguments)

        return mock.patch.object(torch.Tensor, name, method)

    with contextlib.ExitStack() as stack:
        stack.enter_context(reads("tolist", lambda tensor: made_up(tensor).tolist()))
        stack.enter_context(reads("item", lambda tensor: made_up(tensor).item()))
        stack.enter_context(reads("__bool__", lambda tensor: bool(made_up(tensor))))
        stack.enter_context(reads("__float__", lambda tensor: float(made_up(tensor).item())))
        stack.enter_context(reads("__int__", lambda tensor: int(made_up(tensor).item())))
        stack.enter_context(reads("__array__", made_up))
        stack.enter_context(reads("numpy", made_up))
        stack.enter_context(reads("pin_memory", lambda tensor: tensor))  # which FakeTensorMode does not know
        # Else operations on single numbers are computed, on a device that is not there.
        stack.enter_context(mock.patch.object(FakeTensorMode, "may_turn_const", return_value=False))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        yield read


class _Opened:
    """An open safetensors file, whose tensors are read as they are."""

    def __init__(self, path: Path, **given: Any) -> None:
        self._file: Any = safetensors.safe_open(path, **given)

    def __enter__(self) -> "_Opened":
        self._file.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        with unset_fake_temporarily():
            tensor: torch.Tensor = self._file.get_tensor(name)
            return tensor


def _without_values(folder: Path, name: str, place: torch.device, dtype: torch.dtype, *_: object) -> PreTrainedModel:
    with torch.device(place):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=dtype)
    model.eval()
    return model


def loaded_on_a_card(folder: Path, dtype: str = "float32") -> LoadedModel:
    """Load a checkpoint as if on a card, but for its weights, of which only shapes and types are taken."""
    with contextlib.ExitStack() as stack:
        for module, name, instead in (
            (loading, "load_weights", _without_values),
            (loading, "device_name", str),
            (trained, "safe_open", _Opened),
            (torch.cuda, "mem_get_info", lambda *_: (1 << 40, 1 << 40)),
            (self_check, "agree", lambda *_: True),  # values that were made up
            (self_check, "_check_numbers", lambda *_: None),
        ):
            stack.enter_context(mock.patch.object(module, name, instead))
        return load(folder, "a model", "cuda", dtype, lambda _: None, lambda _: None)
