"""A model that is a table, with logits for every text: fast enough to be asked a hundred thousand times."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import torch

from ladechat.decoder.reading import read
from ladechat.decoder.verify_mask import StepLayout


class TableRunner:
    """The `Runner` of a random table. A slot's logits follow from the tokens that it sees, in order of position."""

    context_length = 64
    plain_only = None

    @property
    def reach(self) -> int:
        return self.context_length - len(self.tokens)

    def __init__(self, vocabulary: int, seed: int, spread: float = 1.5) -> None:
        self.tokens: list[int] = []
        self._pending: StepLayout | None = None

        @cache
        def logits(text: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
            dice = np.random.default_rng([seed, *text])
            return (spread * dice.standard_normal(vocabulary)).astype(np.float32)

        self.logits = logits

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        self.tokens = list(tokens[:-1])
        yield len(self.tokens)

    def forward(self, layout: StepLayout) -> torch.Tensor:
        self._pending = layout
        rows = []
        for slot in range(len(layout)):
            seen = sorted(layout.mask[slot].nonzero()[0], key=lambda other: layout.positions[other])
            rows.append(self.logits((*self.tokens, *(layout.tokens[other] for other in seen))))
        return torch.from_numpy(np.stack(rows))

    def read(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        return read(logits)

    def keep(self, slots: Sequence[int]) -> None:
        assert self._pending is not None
        self.tokens.extend(self._pending.tokens[slot] for slot in slots)
