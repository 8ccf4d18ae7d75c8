"""A model that is a table, with logits for every text: fast enough to be asked a hundred thousand times."""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.largest import largest
from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree

Logits = Callable[[tuple[int, ...]], NDArray[np.float32]]
"""Logits after a text, (vocabulary,)."""


class TableRunner:
    """The `Runner` of a table. A slot's logits follow from the tokens that it sees, in order of position.

    Its hidden states are its logits, and a pseudo row is the map of those of its slot. When it drafts it is sure of
    itself, whatever layers it skips.
    """

    layers = 4

    def __init__(self, logits: Logits, context_length: int = 64, capabilities: Capabilities | None = None) -> None:
        self.logits = logits
        self.context_length = context_length
        self.capabilities = capabilities or Capabilities()
        self.tokens: list[int] = []
        self._pending: SlotTree | None = None

    @property
    def max_positions(self) -> int:
        return self.context_length - len(self.tokens)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        self.tokens = list(tokens[:-1])
        yield len(self.tokens)

    def prepare(self) -> None:
        pass

    def forward(self, tree: SlotTree) -> torch.Tensor:
        self._pending = tree
        mask, positions = tree.mask, tree.positions
        assert positions.max() < self.max_positions
        rows = []
        for slot in range(len(tree)):
            seen = sorted(mask[slot].nonzero()[0], key=lambda other: positions[other])
            rows.append(self.logits((*self.tokens, *(tree.tokens[other] for other in seen))))
        return torch.from_numpy(np.stack(rows))

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        states, own = self.forward(tree), list(want.carriers)
        maps = want.maps
        pseudo = None if maps is None else torch.einsum("kde,ce->ckd", maps.weights, states[own])
        return states, Hidden(states, own, pseudo, lambda hidden: hidden)

    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        assert skipped < set(range(self.layers)) and 0 < most <= self.max_positions
        text = [*self.tokens, token]
        for _ in range(most):
            text.append(int(self.logits(tuple(text)).argmax()))
        return [Drafted(one, 1.0) for one in text[-most:]]

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        tokens: list[int] = logits.argmax(-1).tolist()
        return tokens, None

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        return largest(logits, count)

    def commit(self, slots: Sequence[int]) -> None:
        assert self._pending is not None
        self.tokens.extend(self._pending.tokens[slot] for slot in slots)
        self._pending = None


def random_table(vocabulary: int, seed: int, spread: float = 1.5) -> TableRunner:
    """Logits drawn anew for every text, the same ones whenever it is asked for."""

    @cache
    def logits(text: tuple[int, ...]) -> NDArray[np.float32]:
        dice = np.random.default_rng(hash((seed, *text)) % 2**63)  # of numbers: the same in every process
        return (spread * dice.standard_normal(vocabulary)).astype(np.float32)

    return TableRunner(logits)
