"""The KV cache of one sequence in preallocated slabs, for an unmodified transformers model."""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationMixin
from transformers.cache_utils import Cache, CacheLayerMixin

from ladechat.model.kernels.large_pages import prefer_large_pages
from ladechat.model.runners.out_of_memory import memory_is_used_up

SMALLEST_CAPACITY = 512
SMALLEST_GROWTH = 64
"""The slots by which the slabs grow at least where the memory does not suffice for doubling."""

CACHE, FORMER_OR_LATER = (
    ("cache", "past_key_values")
    if "cache" in inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
    else ("past_key_values", "cache")
)
"""The name in the installed transformers, and the name in other versions."""


class GivenLayer(CacheLayerMixin):
    """A cache layer whose tensors exist before the first pass, and have no maximum length."""

    is_sliding = False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing."""

    def get_max_length(self) -> int:
        return -1


class SlabLayer(GivenLayer):
    """One layer of a `SlabCache`: views into its slabs. The model appends to it without copying the cached tokens."""

    def __init__(self, cache: "SlabCache", index: int) -> None:
        super().__init__()
        self._cache, self._index = cache, index

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the (1, heads, T, head_dim) states of a pass after the cached ones; return views of all of them."""
        start, count = self._cache.length, key_states.shape[2]
        keys, values = self._cache.heads_first(self._index)
        keys.narrow(2, start, count).copy_(key_states)
        values.narrow(2, start, count).copy_(value_states)
        return keys.narrow(2, 0, start + count), values.narrow(2, 0, start + count)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length + query_length, 0

    def get_seq_length(self) -> int:
        return self._cache.length


class SlabCache(Cache):
    """The KV cache of one sequence.

    Keys and values of the same shape share one slab (layers, capacity, heads, head_dim), so that committing the slots
    of an accepted path is one gather for all of them. The cached tokens of a layer are contiguous.

    Args:
        shapes: for each layer the (heads, head_dim) of its keys and of its values.
        capacity_limit: the most tokens ever cached, including the slots of a pass.

    Attributes:
        length: the number of cached tokens.
        capacity: the number of tokens for which the slabs have room.
        growths: how often the slabs were replaced by larger ones.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[tuple[int, int], tuple[int, int]]],
        dtype: torch.dtype,
        device: torch.device,
        capacity_limit: int,
    ) -> None:
        super().__init__(layers=[SlabLayer(self, index) for index in range(len(shapes))])
        self.length = self.growths = 0
        self.capacity = min(SMALLEST_CAPACITY, capacity_limit)
        self._capacity_limit = capacity_limit
        rows: Counter[tuple[int, int]] = Counter()
        self._places: list[list[tuple[tuple[int, int], int]]] = []  # the slab and the row in it of keys and of values
        self._heads_first: list[tuple[Tensor, Tensor]] = []
        self._items: list[np.ndarray[Any, Any]] = []
        self._on_cpu = device.type == "cpu"
        for layer_shapes in shapes:
            self._places.append([])
            for shape in layer_shapes:
                self._places[-1].append((shape, rows[shape]))
                rows[shape] += 1
        self._slabs = {
            shape: prefer_large_pages(torch.empty(count, self.capacity, *shape, dtype=dtype, device=device))
            for shape, count in rows.items()
        }

    @property
    def nbytes(self) -> int:
        """The size of the slabs in bytes: for `capacity` tokens, cached or not."""
        return sum(slab.nbytes for slab in self._slabs.values())

    def rows(self, layer: int, end: int) -> tuple[Tensor, Tensor]:
        """Return views of the keys and values of the first `end` tokens in a layer, (end, heads, head_dim) each."""
        keys, values = (self._slabs[shape][row, :end] for shape, row in self._places[layer])
        return keys, values

    def all_rows(self, end: int) -> list[Tensor]:
        """Return the `rows` of every layer: keys, values, keys, values …"""
        rows = {shape: slab[:, :end].unbind() for shape, slab in self._slabs.items()}
        return [rows[shape][row] for places in self._places for shape, row in places]

    def heads_first(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return views of a layer's keys and values in the layout of attention, (1, heads, capacity, head_dim)."""
        if not self._heads_first:
            rows = [row.transpose(0, 1)[None] for row in self.all_rows(self.capacity)]
            self._heads_first = list(zip(rows[::2], rows[1::2], strict=True))
        return self._heads_first[layer]

    def reserve(self, slots: int) -> None:
        """Make room for `slots` slots after the cached tokens.

        Slabs that are too small are doubled or, where the memory does not suffice for that, made as large as needed.

        Raises:
            RuntimeError, MemoryError: the memory does not suffice for that either; the cache still holds its tokens.
        """
        needed = self.length + slots
        if needed <= self.capacity:
            return
        doubled = max(self.capacity, min(SMALLEST_CAPACITY, self._capacity_limit))
        while doubled < needed:
            doubled *= 2
        if not self.length:  # nothing to copy, so the old slabs can be freed first
            self.give_back()
        try:
            self._grow(max(needed, min(doubled, self._capacity_limit)))
        except (RuntimeError, MemoryError) as error:
            if not memory_is_used_up(error):
                raise
        if self.capacity < needed:
            self._grow(max(needed, min(needed + SMALLEST_GROWTH, self._capacity_limit)))

    def _grow(self, capacity: int) -> None:
        # All or nothing: where the memory does not suffice, the cache stays unchanged.
        grown = {
            shape: prefer_large_pages(slab.new_empty(slab.shape[0], capacity, *slab.shape[2:]))
            for shape, slab in self._slabs.items()
        }
        for shape, slab in self._slabs.items():
            grown[shape][:, : self.length] = slab[:, : self.length]
        self._slabs, self.capacity = grown, capacity
        self._heads_first, self._items = [], []
        self.growths += 1

    @torch.inference_mode()
    def wipe(self, places: int | None = None) -> None:
        """Zero all places after the cached tokens, or the first few: a graph reads them too, and 0 · NaN is NaN."""
        end = self.capacity if places is None else self.length + places
        for slab in self._slabs.values():
            slab[:, self.length : end] = 0

    def commit(self, slots: Sequence[int]) -> None:
        """Append these slots of the last pass, in this order, and drop its other slots."""
        if list(slots) != [*range(len(slots))]:
            self._move(slots)
        self.length += len(slots)

    def _move(self, slots: Sequence[int]) -> None:
        """Copy these slots, in this order, to the places right after the cached tokens."""
        start, end = self.length, self.length + len(slots)
        source = np.asarray(slots) + start
        if self._on_cpu:
            for numbers in self._in_numpy():
                numbers[:, start:end] = numbers[:, source]
            return
        with torch.inference_mode():
            for slab in self._slabs.values():
                places = torch.from_numpy(source)  # which a GPU copies asynchronously, from pinned memory
                places = places.pin_memory() if slab.is_cuda else places
                slab[:, start:end] = slab.index_select(1, places.to(slab.device, non_blocking=slab.is_cuda))

    def _in_numpy(self) -> list[np.ndarray[Any, Any]]:
        """Return the slabs as numpy arrays with one item per row and token: for few slots much faster than torch."""
        if not self._items:
            in_bytes = (slab.view(torch.uint8).numpy().reshape(*slab.shape[:2], -1) for slab in self._slabs.values())
            self._items = [of.view(f"V{of.shape[2]}")[..., 0] for of in in_bytes]
        return self._items

    @torch.inference_mode()
    def copied(self, start: int, end: int) -> list[Tensor]:
        """Return copies of the tokens from `start` up to `end`: for each slab, (layers, tokens, heads, head_dim)."""
        return [slab[:, start:end].clone() for slab in self._slabs.values()]

    @torch.inference_mode()
    def paste(self, start: int, rows: Sequence[Tensor]) -> None:
        """Write copies made by `copied` to the places from `start` on, cached or not."""
        for slab, copy in zip(self._slabs.values(), rows, strict=True):
            slab[:, start : start + copy.shape[1]] = copy

    def give_back(self) -> None:
        """Drop all tokens and free the slabs; `reserve` allocates new ones."""
        self.length = self.capacity = 0
        self._slabs = {shape: slab.new_empty(slab.shape[0], 0, *slab.shape[2:]) for shape, slab in self._slabs.items()}
        self._heads_first, self._items = [], []

    def truncate(self, length: int) -> None:
        """Drop all tokens from number `length` on."""
        self.length = min(self.length, length)


def cache_argument(function: Callable[..., Any]) -> str:
    """Return the name of the argument by which a model, a layer or a preparation takes a KV cache.

    A deprecated name that it still takes with a warning does not count.
    """
    named = inspect.signature(function).parameters
    return FORMER_OR_LATER if FORMER_OR_LATER in named and CACHE not in named else CACHE


class Aside:
    """The content of a cache, copied as far as another text has overwritten it.

    The common prefix of both texts stays in place and is not copied: for another question in a conversation that is
    the whole of it, and where the last question is asked again, only the last answer is copied.

    Attributes:
        tokens: the tokens that can be restored; fewer than all where the memory did not suffice for a copy.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self._in_place = len(self.tokens)
        self._copies: list[tuple[int, list[Tensor]]] = []

    def copy(self, cache: SlabCache, start: int) -> None:
        """Copy what is still in place from token `start` on, before it is overwritten."""
        if start >= self._in_place:
            return
        try:
            self._copies.append((start, cache.copied(start, self._in_place)))
        except (RuntimeError, MemoryError) as error:
            if not memory_is_used_up(error):
                raise
            self._copies.clear()
            del self.tokens[start:]
        self._in_place = start

    def bring_back(self, cache: SlabCache) -> None:
        """Restore the text in the cache that it came from, replacing the present content."""
        for start, rows in self._copies:
            cache.paste(start, rows)
        cache.length = len(self.tokens)
