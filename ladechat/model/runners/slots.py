"""The slots of one pass as plain values: of a tree, of a prompt chunk, with filler slots; and their attention mask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.verify_mask import SlotTree


@dataclass(frozen=True, slots=True)
class Slots:
    """T slots after the cached tokens, all of which every slot sees.

    Attributes:
        tokens: (T,) token ids.
        positions: (T,) int64, relative to the first position that is not cached.
        mask: (T, T) bool; `mask[i, j]` says whether slot i sees slot j.
    """

    tokens: Sequence[int]
    positions: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of_tree(cls, tree: SlotTree) -> "Slots":
        """Return the present slots of a tree."""
        return cls(tuple(tree.tokens), tree.positions, tree.mask)

    @classmethod
    def causal(cls, tokens: Sequence[int]) -> "Slots":
        """Return the slots of tokens in a row, each seeing those before it: a chunk of a prompt."""
        count = len(tokens)
        return cls(tuple(tokens), np.arange(count), np.tri(count, dtype=np.bool_))

    def with_fillers(self, tokens: Sequence[int], positions: Sequence[int]) -> "Slots":
        """Return the same with further slots at the end, each of which sees only itself and is seen by no other."""
        own, more = len(self), len(tokens)
        mask = np.zeros((own + more, own + more), np.bool_)
        mask[:own, :own] = self.mask
        mask[range(own, own + more), range(own, own + more)] = True
        return Slots((*self.tokens, *tokens), np.append(self.positions, np.asarray(positions, np.int64)), mask)

    def filled_up(self, count: int) -> "Slots":
        """Return the same padded with fillers to `count` slots."""
        more = [0] * (count - len(self))
        return self.with_fillers(more, more) if more else self


class AttentionMasks:
    """Makes the attention masks of a model's passes.

    `windows` has for each kind of layer its sliding window in positions; None: full attention. `added` is the model's
    type where its attention adds the mask to the scores (eager attention); else None.
    """

    def __init__(self, windows: Mapping[str, int | None], device: torch.device, added: torch.dtype | None) -> None:
        self._windows, self._device, self._added = windows, device, added
        self._slides = any(windows.values())
        self._all_seen = np.ones((1, 1, 1, 1), np.bool_)

    def of(self, slots: Slots, cached: int) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return the (1, 1, T, L + T) mask over L cached tokens and T slots; in hybrid models, one per layer kind."""
        if len(slots) == 1 and not self._slides:
            if self._all_seen.size <= cached:  # a view of a larger one is passed, which is saved
                self._all_seen = np.ones((1, 1, 1, 2 * (cached + 1)), np.bool_)
            return self._on_device(self._all_seen[..., : cached + 1])
        visible = np.ones((1, 1, len(slots), cached + len(slots)), np.bool_)
        visible[..., cached:] = slots.mask
        if not self._slides:
            return self._on_device(visible)
        positions = slots.positions + cached
        distance = positions[:, None] - np.concatenate([np.arange(cached), positions])[None, :]
        masks = {
            kind: self._on_device(visible & (distance < window) if window else visible)
            for kind, window in self._windows.items()
        }
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _on_device(self, visible: NDArray[np.bool_]) -> torch.Tensor:
        mask = torch.from_numpy(visible)
        if self._device.type != "cpu":
            mask = mask.to(self._device)
        if self._added is None:
            return mask
        return torch.zeros_like(mask, dtype=self._added).masked_fill_(~mask, torch.finfo(self._added).min)
