"""Forward passes compiled ahead of time, for small models on a CPU.

Such a model spends much of a pass between its operations: in Python, in the dispatch of torch, in memory for what lies
in between; and the rest in products of a few rows, which the usual libraries are not made for. A pass that is exported
and compiled once has none of that, and calls kernels of its own (`ladechat.model.kernels`). There are two, for one slot
and for any number from two on, both behind any number of cached tokens. A program of its own compiles them
(`ladechat.model.compiler`), at low priority, while the model answers as it is; what is on disk when an answer begins is
used.
"""

import contextlib
import hashlib
import inspect
import json
import logging
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from platformdirs import user_cache_path
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from ladechat.decoder.verify_mask import StepLayout
from ladechat.model import kernels
from ladechat.model.kv_cache import SlabCache, with_states
from ladechat.model.passes import Masks

LEAST_SLOTS = (1, 2)
"""There is a pass of one slot, and one of two and more."""

MOST_SLOTS = 64
"""Larger passes run as the model does: for many rows the usual libraries are made."""

MOST_PARAMETERS = 32_000_000
"""Passes of larger models are limited by memory and arithmetic: there is little between the operations to save, and
the weights are held once more, in the order in which they are read."""

FOLDERS_KEPT = 4
"""So many folders of compiled passes stay on disk; those that were used the longest ago make room."""

KERNELS = "kernels.so"

FORMAT = 2
"""Raised when the compiler is asked to go about it in another way."""

logger = logging.getLogger(__name__)


class SlotPass(nn.Module):
    """A forward pass as a function of tensors alone, as an exporter wants it.

    Args:
        model: a decoder-only transformers model.
        kinds: what its layers call their masks, if there are several.
    """

    def __init__(self, model: PreTrainedModel, kinds: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self._kinds = tuple(kinds)

    def forward(self, tokens: Tensor, positions: Tensor, masks: list[Tensor], rows: list[Tensor]) -> Tensor:
        """The (T, vocabulary) logits; the keys and values of the T slots enter `rows` behind those that are cached.

        Args:
            tokens: (1, T) int64.
            positions: (1, T) int64.
            masks: (1, 1, T, L + T) bool, one of each kind.
            rows: (L + T or more, heads, head_dim): keys and values of each layer in turn, the first L of them cached.
        """
        seen = masks[0].shape[3]
        cached = seen - tokens.shape[1]
        torch._check(seen <= rows[0].shape[0])  # type: ignore[no-untyped-call]  # torch leaves it untyped
        read = [row[:seen] for row in rows]
        layers: list[Any] = [_GivenLayer(*pair, cached) for pair in zip(read[::2], read[1::2], strict=True)]
        output = self.model(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=masks[0] if len(masks) == 1 else dict(zip(self._kinds, masks, strict=True)),
            past_key_values=Cache(layers=layers),
            use_cache=True,
        )
        logits: Tensor = output.logits[0]
        return logits


class _GivenLayer(CacheLayerMixin):
    """A layer's keys and values with room for those of one pass at their end."""

    is_sliding = False

    def __init__(self, keys: Tensor, values: Tensor, cached: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        self._keys, self._values, self._cached = keys, values, cached
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the tensors are given."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        keys = with_states(self._keys, self._cached, key_states)
        return keys, with_states(self._values, self._cached, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._keys.shape[0], 0

    def get_seq_length(self) -> int:
        return self._cached

    def get_max_length(self) -> int:
        return -1


class CompiledPasses:
    """The passes of one model that are compiled so far.

    What is on disk is looked at when it is asked to `look`, and not between: answers are not held up by it, and while
    one is written nothing changes. A pass that cannot be loaded or run is left alone from then on.

    Args:
        folder: where the compiler puts them, see `folder_for`.
        model: whose passes they are. They hold no weights of their own, but read one copy of its.
    """

    def __init__(self, folder: Path, model: PreTrainedModel) -> None:
        self._folder = folder
        self._model = model
        self._weights: dict[str, Tensor] = {}
        self._passes: dict[int, torch._C._aoti.AOTIModelContainerRunnerCpu] = {}
        self._useless: set[int] = set()
        self._likeliest: kernels.Likeliest | None = None
        self._one_slot = _OneSlot()

    @property
    def sizes(self) -> list[int]:
        """See `ladechat.model.passes.Passes.sizes`: nothing is filled up, so these are those that they begin with."""
        return sorted(self._passes)

    def look(self) -> None:
        """Load what the compiler has put in its place since the last time."""
        for least in LEAST_SLOTS:
            library = library_of(self._folder, least)
            if least in self._passes or least in self._useless or not library.exists():
                continue
            try:
                self._passes[least] = load_pass(library, self._weights_read())
            except (RuntimeError, OSError, LookupError) as error:
                self._leave(least, error)
        with contextlib.suppress(OSError):
            os.utime(self._folder)  # which ones were used last, see FOLDERS_KEPT

    def forward(self, layout: StepLayout, cache: SlabCache, masks: Masks) -> Tensor | None:
        """See `ladechat.model.passes.Passes.forward`."""
        slots = len(layout)
        least = 1 if slots == 1 else 2
        if least not in self._passes or slots > MOST_SLOTS:
            return None
        cache.reserve(slots)
        # Few functions, and numpy's rather than torch's: after a pass none of their code is in the processor's cache.
        if slots == 1:
            tokens, positions = self._one_slot(layout.tokens[0], cache.length)
        else:
            tokens = torch.from_numpy(np.array([layout.tokens]))
            positions = torch.from_numpy((layout.positions + cache.length)[None])
        return self.run(least, tokens, positions, masks(layout), cache.whole_rows())

    def read(self, logits: Tensor) -> tuple[list[int], list[float]] | None:
        """See `ladechat.model.passes.Passes.read`."""
        return None if self._likeliest is None or logits.dtype != torch.float32 else self._likeliest(logits)

    def prepare(self) -> None:
        """See `ladechat.model.passes.Passes.prepare`: nothing can be done, another process compiles."""

    def rest(self) -> None:
        """See `ladechat.model.passes.Passes.rest`: there is nothing to do."""

    def run(
        self, least: int, tokens: Tensor, positions: Tensor, masks: list[Tensor], rows: list[Tensor]
    ) -> Tensor | None:
        """See `SlotPass.forward`, by the pass of `least` slots and more. None if it fails."""
        try:
            (logits,) = self._passes[least].run([tokens, positions, *masks, *rows])
        except RuntimeError as error:
            del self._passes[least]
            self._leave(least, error)
            return None
        return logits

    def _weights_read(self) -> dict[str, Tensor]:
        """What compiled passes read, made when the first of them is there."""
        if not self._weights:
            library = self._folder / KERNELS
            try:
                kernels.load(library)
            except OSError:
                library.unlink(missing_ok=True)  # so that the compiler makes it anew
                raise
            self._likeliest = kernels.Likeliest()
            self._weights = weights_of(SlotPass(kernels.with_kernels(self._model), ()))
        return self._weights

    def _leave(self, least: int, error: Exception) -> None:
        self._useless.add(least)
        logger.warning("The compiled pass of %s slots or more is not used: %s", least, error)


class _OneSlot:
    """What a pass of one slot reads, in memory that is used again: to make it anew takes a twentieth of such a pass."""

    def __init__(self) -> None:
        self._token, self._position = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64)
        self._tensors = torch.from_numpy(self._token), torch.from_numpy(self._position)

    def __call__(self, token: int, position: int) -> tuple[Tensor, Tensor]:
        """The two as (1, 1) int64, valid until the next call."""
        self._token[0, 0], self._position[0, 0] = token, position
        return self._tensors


def weights_of(slot_pass: SlotPass) -> dict[str, Tensor]:
    """All parameters and buffers of a pass by their names, those under several names under each."""
    named = (slot_pass.named_parameters(remove_duplicate=False), slot_pass.named_buffers(remove_duplicate=False))
    return {name: tensor.detach() for names in named for name, tensor in names}


def load_pass(library: Path, weights: dict[str, Tensor]) -> torch._C._aoti.AOTIModelContainerRunnerCpu:
    """A compiled pass that reads these weights, where they are: they have to stay as long as it does.

    Raises:
        RuntimeError: it cannot be loaded.
        LookupError: it wants weights that are not there.
    """
    loaded = torch._C._aoti.AOTIModelContainerRunnerCpu(str(library), 1)
    wanted = loaded.get_constant_names_to_original_fqns()
    constants = {name: weights[weight] for name, weight in wanted.items()}
    loaded.update_constant_buffer(constants, use_inactive=False, validate_full_updates=True, user_managed=True)
    return loaded


def folder_for(model: PreTrainedModel) -> Path:
    """Where the compiled passes of a model are kept: one folder for all that decides what they compute, and how."""
    digest = hashlib.blake2b(digest_size=12)
    about = {
        "config": {key: value for key, value in model.config.to_dict().items() if key != "_name_or_path"},
        "attention": model.config._attn_implementation,
        "threads": torch.get_num_threads(),
        "versions": [torch.__version__, transformers.__version__],
        "processor": [platform.system(), platform.machine(), processor()],
        "made": how_made(),
    }
    digest.update(json.dumps(about, sort_keys=True, default=str).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return user_cache_path("ladechat") / "passes" / digest.hexdigest()


def how_made() -> list[Any]:
    """What decides how passes are made, in words."""
    source = [inspect.getsource(part) for part in (SlotPass, _GivenLayer, with_states, kernels)]
    return [FORMAT, *source, *(one.read_text(encoding="utf-8") for one in kernels.SOURCES)]


def library_of(folder: Path, least: int) -> Path:
    """The file of the compiled pass of so many slots and more."""
    return folder / f"{least}.so"


def processor() -> str:
    """What the processor can do: code made for one may not run on another that shares a home folder."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
