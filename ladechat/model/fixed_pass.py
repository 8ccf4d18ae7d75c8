"""A forward pass whose shapes and places in memory are fixed, so that it can be recorded once and played again.

What changes from step to step (tokens, positions, who sees whom, how many tokens are cached) lies in buffers that all
passes share; where keys and values go, and what the slots see of the places, follows from it on the device.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from ladechat.decoder.verify_mask import StepLayout


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


class Given(NamedTuple):
    """The inputs of a pass of T slots at L cached tokens, on its device.

    Attributes:
        cached: (1,) int64, L.
        tokens: (1, T) int64.
        positions: (1, T) int64.
        sees: (T, T) bool, who sees whom.
    """

    cached: Tensor
    tokens: Tensor
    positions: Tensor
    sees: Tensor


class Inputs:
    """Buffers for the inputs of passes of up to `most` slots."""

    def __init__(self, most: int, device: torch.device) -> None:
        self._numbers = torch.zeros(1 + 2 * most, dtype=torch.int64, device=device)
        self._sees = torch.zeros(most * most, dtype=torch.bool, device=device)

    def of(self, slots: int) -> Given:
        """Where the inputs of a pass of so many slots lie."""
        cached, tokens, positions = torch.split(self._numbers[: 1 + 2 * slots], [1, slots, slots])
        return Given(cached, tokens[None], positions[None], self._sees[: slots * slots].view(slots, slots))

    def fill(self, layout: StepLayout, cached: int) -> None:
        """Put a layout behind so many cached tokens. Nothing waits for it, on a GPU."""
        self._put([cached], layout.tokens, layout.positions + cached, layout.mask)

    def clear(self, slots: int, cached: int) -> None:
        """Put slots there that nobody asks for: as good as any for a pass that is not meant."""
        nothing = np.zeros(slots, np.int64)
        self._put([cached], nothing, nothing, np.eye(slots, dtype=np.bool_))

    def _put(self, cached: Any, tokens: Any, positions: Any, sees: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        numbers = np.concatenate([cached, tokens, positions]).astype(np.int64, copy=False)
        for buffer, values in ((self._numbers, numbers), (self._sees, sees.ravel())):
            source = torch.from_numpy(values)
            if buffer.is_cuda:  # memory that it can read by itself; torch keeps it until that is done
                source = source.pin_memory()
            buffer[: len(values)].copy_(source, non_blocking=True)


def places_of(given: Given) -> Tensor:
    """(T,) int64: where the keys and values of the slots go, behind what is cached."""
    return given.cached + torch.arange(given.sees.shape[0], device=given.sees.device)


def seen_places(given: Given, context: int, window: int | None) -> Tensor:
    """(T, context) bool: what each slot sees of the places, looking back over fewer than `window` positions."""
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


def as_bias(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to scores: 0 where something is seen, else -inf."""
    return torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, -torch.inf)


class Body(Protocol):
    """A model as a function of tensors alone."""

    def __call__(self, given: Given, rows: Sequence[Tensor], way: str) -> Tensor:
        """The (T, vocabulary) logits; keys and values of the slots enter `rows` behind what is cached.

        Args:
            given: the inputs.
            rows: keys and values of each layer in turn, (context, heads, head_dim), all numbers finite.
            way: how attention is computed, one of `ladechat.model.attention.WAYS`, where the body has a choice.
        """
        ...


class ModelBody:
    """Any decoder-only transformers model as it is, with torch's attention.

    Args:
        model: loaded for "sdpa" attention.
        windows: its kinds of layers, and how far each looks back.
    """

    def __init__(self, model: PreTrainedModel, windows: Mapping[str, int | None]) -> None:
        self._model = model
        self._windows = dict(windows) if any(windows.values()) else {"": None}

    def __call__(self, given: Given, rows: Sequence[Tensor], way: str) -> Tensor:
        """See `Body`. Attention is that of the model."""
        places = places_of(given)
        layers: list[Any] = [_PlacedLayer(*pair, places) for pair in zip(rows[::2], rows[1::2], strict=True)]
        masks = {
            kind: as_bias(seen_places(given, rows[0].shape[0], window), self._model.dtype)[None, None]
            for kind, window in self._windows.items()
        }
        logits: Tensor = self._model(
            input_ids=given.tokens,
            position_ids=given.positions,
            attention_mask=masks if len(masks) > 1 else next(iter(masks.values())),
            past_key_values=Cache(layers=layers),
            use_cache=True,
        ).logits
        return logits[0]


class _PlacedLayer(CacheLayerMixin):
    """A layer's keys and values, all places of it, where those of a pass go to given places."""

    is_sliding = False

    def __init__(self, keys: Tensor, values: Tensor, places: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        self._keys, self._values, self._places = keys, values, places
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the tensors are given."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        for row, states in ((self._keys, key_states), (self._values, value_states)):
            row.index_copy_(0, self._places, states[0].transpose(0, 1))
        return self._keys.transpose(0, 1)[None], self._values.transpose(0, 1)[None]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._keys.shape[0], 0

    def get_seq_length(self) -> int:
        return self._keys.shape[0] - self._places.shape[0]

    def get_max_length(self) -> int:
        return -1
