"""Forward passes compiled ahead of time, for small models on a CPU.

Such a model spends much of a pass between its operations: in Python, in the dispatch of torch, in memory for what lies
in between. A pass that is exported and compiled once has none of that. It is compiled for a fixed number of slots and
any number of cached tokens, by a program of its own (`ladechat.model.compiler`), at low priority, while the model
answers as it is; what is on disk when an answer begins is used. A pass of fewer slots is filled up with slots
that nobody sees.
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
from ladechat.model.kv_cache import SlabCache, with_states
from ladechat.model.passes import Masks

SLOT_COUNTS = (1, 4, 8, 16, 32)
"""The numbers of slots that passes are compiled for. A larger pass runs uncompiled: its time goes into arithmetic."""

MOST_PARAMETERS = 32_000_000
"""Passes of larger models are limited by memory and arithmetic: there is little between the operations to save, and
each compiled pass holds the weights once more, in the order in which it reads them."""

FOLDERS_KEPT = 4
"""So many folders of compiled passes stay on disk; those that were used the longest ago make room."""

FORMAT = 1
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
        """The (T, vocabulary) logits; the keys and values of the T slots enter the ends of `rows`.

        Args:
            tokens: (1, T) int64.
            positions: (1, T) int64.
            masks: (1, 1, T, L + T) bool, one of each kind.
            rows: (L + T, heads, head_dim): keys and values of each layer in turn, of which the first L are cached.
        """
        cached = rows[0].shape[0] - tokens.shape[1]
        layers: list[Any] = [_GivenLayer(*pair, cached) for pair in zip(rows[::2], rows[1::2], strict=True)]
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
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._passes: dict[int, torch._C._aoti.AOTIModelContainerRunnerCpu] = {}
        self._useless: set[int] = set()

    @property
    def sizes(self) -> list[int]:
        """The numbers of slots for which there is a pass."""
        return sorted(self._passes)

    def look(self) -> None:
        """Load what the compiler has put in its place since the last time."""
        for slots in SLOT_COUNTS:
            library = library_of(self._folder, slots)
            if slots in self._passes or slots in self._useless or not library.exists():
                continue
            try:
                self._passes[slots] = torch._C._aoti.AOTIModelContainerRunnerCpu(str(library), 1)
            except RuntimeError as error:
                self._leave(slots, error)
        with contextlib.suppress(OSError):
            os.utime(self._folder)  # which ones were used last, see FOLDERS_KEPT

    def forward(self, layout: StepLayout, cache: SlabCache, masks: Masks) -> Tensor | None:
        """See `ladechat.model.passes.Passes.forward`."""
        slots = self.slots_for(len(layout))
        if slots is None:
            return None
        cache.reserve(slots)
        full = filled_up(layout, slots)
        logits = self.run(
            slots,
            tokens=torch.tensor([full.tokens]),
            positions=torch.from_numpy(full.positions + cache.length)[None],
            masks=masks(full),
            rows=cache.all_rows(cache.length + slots),
        )
        return None if logits is None else logits[: len(layout)]

    def prepare(self) -> None:
        """See `ladechat.model.passes.Passes.prepare`: nothing can be done, another process compiles."""

    def rest(self) -> None:
        """See `ladechat.model.passes.Passes.rest`: there is nothing to do."""

    def slots_for(self, count: int) -> int | None:
        """How many slots the compiled pass for a layout of `count` slots has; None if there is no such pass."""
        slots = next((slots for slots in SLOT_COUNTS if slots >= count), None)
        return slots if slots in self._passes else None

    def run(
        self, slots: int, tokens: Tensor, positions: Tensor, masks: list[Tensor], rows: list[Tensor]
    ) -> Tensor | None:
        """See `SlotPass.forward`, for tensors of `slots` slots. None if it fails."""
        try:
            (logits,) = self._passes[slots].run([tokens, positions, *masks, *rows])
        except RuntimeError as error:
            del self._passes[slots]
            self._leave(slots, error)
            return None
        return logits

    def _leave(self, slots: int, error: RuntimeError) -> None:
        self._useless.add(slots)
        logger.warning("The compiled pass of %s slots is not used: %s", slots, error)


def folder_for(model: PreTrainedModel) -> Path:
    """Where the compiled passes of a model are kept: one folder for all that decides what they compute, and how."""
    digest = hashlib.blake2b(digest_size=12)
    about = {
        "config": {key: value for key, value in model.config.to_dict().items() if key != "_name_or_path"},
        "attention": model.config._attn_implementation,
        "threads": torch.get_num_threads(),
        "versions": [FORMAT, torch.__version__, transformers.__version__],
        "processor": [platform.system(), platform.machine(), processor()],
        "source": [inspect.getsource(part) for part in (SlotPass, _GivenLayer, with_states)],
    }
    digest.update(json.dumps(about, sort_keys=True, default=str).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return user_cache_path("ladechat") / "passes" / digest.hexdigest()


def library_of(folder: Path, slots: int) -> Path:
    """The file of the compiled pass of so many slots."""
    return folder / f"{slots}.so"


def filled_up(layout: StepLayout, slots: int) -> StepLayout:
    """The layout with slots at its end that see themselves only and are seen by no other."""
    more = slots - len(layout)
    mask = np.zeros((slots, slots), np.bool_)
    mask[: len(layout), : len(layout)] = layout.mask
    mask[range(len(layout), slots), range(len(layout), slots)] = True
    return StepLayout(
        tokens=(*layout.tokens, *[0] * more),
        positions=np.append(layout.positions, np.zeros(more, np.int64)),
        mask=mask,
        fresh_slots=layout.fresh_slots,
        node_slots=layout.node_slots,
    )


def processor() -> str:
    """What the processor can do: code made for one may not run on another that shares a home folder."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
