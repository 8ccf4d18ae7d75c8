"""A forward pass with fixed shapes and addresses, so that it can be recorded once and replayed.

What changes from step to step (tokens, positions, mask, number of cached tokens) is in buffers that all passes share;
the places of new keys and values, and the places that each slot sees, are computed from them on the device.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from ladechat.decoder.hidden import TransferMaps
from ladechat.model.runners.kv_cache import GivenLayer, cache_argument
from ladechat.model.runners.logits import best
from ladechat.model.runners.slots import Slots


class PassInputs(NamedTuple):
    """The inputs of a pass of T slots after L cached tokens, on the model's device.

    Attributes:
        cached: (1,) int64, L.
        tokens: (1, T) int64.
        positions: (1, T) int64.
        steps: (T,) int64, of each row the map that makes it; -1 for slots. Only where pseudo rows enter.
        carriers: (T,) int64, of each pseudo row the slot that carries it; 0 for slots. Only where pseudo rows enter.
        sees: (T, T) bool; `sees[i, j]` says whether slot i sees slot j.
    """

    cached: Tensor
    tokens: Tensor
    positions: Tensor
    steps: Tensor
    carriers: Tensor
    sees: Tensor


class Variant(NamedTuple):
    """How a pass differs from the model's own.

    Attributes:
        maps: make the pseudo rows that enter half-way up; None: none enter.
        skipped: the decoder layers that are skipped.
    """

    maps: TransferMaps | None = None
    skipped: frozenset[int] = frozenset()


WHOLE = Variant()
"""The model's own pass."""


class Pass(Protocol):
    """A pass as a function with fixed shapes and addresses.

    Attributes:
        whole_cache: whether it takes the whole cache and reads only the cached tokens, so that one recording serves all
            lengths of the cache. Such a pass also gives hidden states and has variants.
    """

    whole_cache: ClassVar[bool]

    def __call__(
        self, given: PassInputs, rows: Sequence[Tensor], variant: Variant = WHOLE
    ) -> tuple[Tensor, Tensor | None]:
        """Return the (T, vocabulary) logits and, where available, the (T, d) final hidden states, the head's input.

        Keys and values of the slots are written to `rows` after the cached ones.

        `rows` are keys and values of each layer in turn, (places, kv_heads, head_dim), all finite.
        """
        ...

    def best(self, logits: Tensor) -> Tensor:
        """Return the (2, T) float32 result of `ladechat.model.runners.logits.best` for the logits of the pass."""
        ...


class Inputs:
    """Buffers for the inputs of passes of up to `most` slots, contiguous in memory, so that one copy fills them."""

    def __init__(self, most: int, device: torch.device) -> None:
        size = 8 * (1 + 4 * most) + most * most
        self._on_device = torch.zeros(size, dtype=torch.uint8, device=device)
        # A GPU copies from pinned memory asynchronously, while Python continues.
        on_gpu = device.type == "cuda"
        self._staged = torch.zeros(size, dtype=torch.uint8, pin_memory=True) if on_gpu else self._on_device
        self._bytes = self._staged.numpy()
        self._fetched = torch.cuda.Event() if on_gpu else None

    def of(self, slots: int) -> PassInputs:
        """Return the buffers as inputs of a pass of `slots` slots."""
        end = 8 * (1 + 4 * slots)
        numbers = self._on_device[:end].view(torch.int64)
        cached, tokens, positions, steps, carriers = torch.split(numbers, [1, slots, slots, slots, slots])
        sees = self._on_device[end : end + slots * slots].view(torch.bool)
        return PassInputs(cached, tokens[None], positions[None], steps, carriers, sees.view(slots, slots))

    def fill(self, slots: Slots, cached: int, entering: NDArray[np.int64] | None = None) -> None:
        """Write the slots of a pass after `cached` cached tokens. Asynchronous on a GPU.

        Args:
            slots: the slots, and the pseudo rows after them.
            cached: the number of cached tokens.
            entering: (2, T) `steps` and `carriers` of `PassInputs`; None without pseudo rows.
        """
        if self._fetched is not None:  # the staged inputs of the pass before are still being copied
            self._fetched.synchronize()
        count = len(slots)
        begin = 8 * (1 + 4 * count)
        end = begin + count**2
        numbers = self._bytes[:begin].view(np.int64)
        numbers[: 1 + 2 * count] = np.concatenate([[cached], slots.tokens, slots.positions + cached])
        if entering is not None:
            numbers[1 + 2 * count :] = entering.reshape(-1)
        self._bytes[begin:end] = slots.mask.reshape(-1)
        if self._fetched is not None:
            self._on_device[:end].copy_(self._staged[:end], non_blocking=True)
            self._fetched.record()


def seen_places(given: PassInputs, context: int, window: int | None) -> Tensor:
    """Return (T, context) bool: the places that each slot sees; with a `window`, those less than `window` positions
    back.
    """
    slots = given.sees.shape[0]
    place = torch.arange(context, device=given.sees.device)
    slot = place - given.cached
    old, own = slot < 0, (slot >= 0) & (slot < slots)
    slot = slot.clamp(0, slots - 1)
    seen = old | (own & given.sees.index_select(1, slot))
    if window is not None:
        at = torch.where(old, place, given.positions[0].index_select(0, slot))
        seen = seen & (given.positions[0][:, None] - at < window)
    return seen


class FixedPass:
    """An unmodified decoder-only transformers model as a function of tensors only.

    Args:
        model: loaded for attention that adds its mask, "sdpa" or "eager".
        windows: for each kind of layer its sliding window in positions; None: full attention.
    """

    whole_cache: ClassVar[bool] = False

    def __init__(self, model: PreTrainedModel, windows: Mapping[str, int | None]) -> None:
        self._model = model
        self._cache_argument = cache_argument(model.forward)
        self._windows = dict(windows) if any(windows.values()) else {"": None}

    def __call__(self, given: PassInputs, rows: Sequence[Tensor], variant: Variant = WHOLE) -> tuple[Tensor, None]:
        """See `Pass`; without hidden states and variants."""
        assert variant is WHOLE
        places = given.cached + torch.arange(given.sees.shape[0], device=given.sees.device)  # after the cached ones
        layers: list[Any] = [_PlacedLayer(*pair, places) for pair in zip(rows[::2], rows[1::2], strict=True)]
        masks = {}
        for kind, window in self._windows.items():
            seen = seen_places(given, rows[0].shape[0], window)[None, None]
            masks[kind] = torch.zeros_like(seen, dtype=self._model.dtype).masked_fill_(~seen, -torch.inf)
        logits: Tensor = self._model(
            input_ids=given.tokens,
            position_ids=given.positions,
            attention_mask=masks if len(masks) > 1 else next(iter(masks.values())),
            **{self._cache_argument: Cache(layers=layers)},
            use_cache=True,
        ).logits
        return logits[0], None

    def best(self, logits: Tensor) -> Tensor:
        return best(logits)


class _PlacedLayer(GivenLayer):
    """A cache layer of fixed size, of which a pass writes given places."""

    def __init__(self, keys: Tensor, values: Tensor, places: Tensor) -> None:
        super().__init__()
        self._keys, self._values, self._places = keys, values, places

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        for row, states in ((self._keys, key_states), (self._values, value_states)):
            row.index_copy_(0, self._places, states[0].transpose(0, 1))
        return self._keys.transpose(0, 1)[None], self._values.transpose(0, 1)[None]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._keys.shape[0], 0

    def get_seq_length(self) -> int:
        return self._keys.shape[0] - self._places.shape[0]
