"""Texts cut into chunks, and which of them a step trains on: that follows from seed and step, so a run can go on."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ladechat.train.options import Refused

HELD_OUT = 0.05
"""The part of the chunks that is kept for measuring: the last ones. At most one text is cut between the two parts."""

EVALUATION_SEED = 7919


class Text(NamedTuple):
    """Tokens, and where the answer begins among them: what stands before it is read, not guessed."""

    tokens: list[int]
    answer: int = 0


class Chunk(NamedTuple):
    """A piece of a text.

    Attributes:
        tokens: its ids.
        first: the first anchor that may be chosen in it.
    """

    tokens: list[int]
    first: int

    def room(self, ahead: int) -> int:
        """How many anchors it has whose guesses, `ahead` of them, can all be compared with the text."""
        return max(0, len(self.tokens) - ahead - 1 - self.first)


@dataclass(frozen=True, slots=True)
class Batch:
    """Chunks of one step, filled up at the right, and their anchors.

    Attributes:
        tokens: (B, T) int64.
        anchors: (B, A) int64 positions in ascending order; the guesses of a read the tokens at a + 2, a + 3 …
    """

    tokens: torch.Tensor
    anchors: torch.Tensor

    def targets(self, ahead: int) -> torch.Tensor:
        """(k, B·A) the tokens that the guesses of the anchors should be."""
        return self.at(self.tokens, range(2, ahead + 2))

    def at(self, values: torch.Tensor, offsets: Sequence[int]) -> torch.Tensor:
        """(len(offsets), B·A, …) the values (B, T, …) so many positions behind each anchor."""
        rows = torch.arange(len(self.tokens), device=self.tokens.device)[:, None]
        return torch.stack([values[rows, self.anchors + offset].flatten(0, 1) for offset in offsets])

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        return Batch(self.tokens.to(device), self.anchors.to(device))


class Chunks:
    """The chunks of some texts, in training and held out.

    Args:
        texts: to be cut.
        length: the most tokens of a chunk.
        ahead: how many tokens are guessed.
        anchors: chosen in each chunk.

    Attributes:
        training: what steps are made of.
        held_out: what is measured on.

    Raises:
        Refused: there are too few chunks.
    """

    def __init__(self, texts: Sequence[Text], length: int, ahead: int, anchors: int) -> None:
        self._ahead = ahead
        found = [chunk for text in texts for chunk in _cut(text, length)]
        wanted = max(1, min(anchors, length - ahead - 1))
        usable = [chunk for chunk in found if chunk.room(ahead) >= min(wanted, 8)]
        if len(usable) < 2:
            raise Refused(
                f"{sum(len(text.tokens) for text in texts):,} tokens make fewer than two chunks of up to {length} "
                "tokens, one to train on and one to measure on; give more with --tokens or --text."
            )
        self._anchors = wanted
        held = max(1, round(HELD_OUT * len(usable)))
        self.training, self.held_out = usable[:-held], usable[-held:]

    @property
    def tokens(self) -> int:
        """How many are trained on."""
        return sum(len(chunk.tokens) for chunk in self.training)

    def step(self, seed: int, number: int, size: int) -> Batch:
        """The batch of a step: every chunk once, in an order of its own for each pass over them."""
        count = len(self.training)
        places = range(number * size, (number + 1) * size)
        orders = {epoch: _order(seed, epoch, count) for epoch in {place // count for place in places}}
        chosen = [self.training[orders[place // count][place % count]] for place in places]
        return self._batch(chosen, _generator(seed, 2 * number + 1))

    def evaluation(self, size: int, most: int | None = None) -> list[Batch]:
        """The held-out chunks in batches, the same anchors every time; at most so many chunks, evenly spread."""
        chunks = self.held_out
        if most is not None and len(chunks) > most:
            chunks = [chunks[index * len(chunks) // most] for index in range(most)]
        generator = _generator(EVALUATION_SEED, 0)
        return [self._batch(chunks[start : start + size], generator) for start in range(0, len(chunks), size)]

    def _batch(self, chunks: Sequence[Chunk], generator: torch.Generator) -> Batch:
        longest = max(len(chunk.tokens) for chunk in chunks)
        tokens = torch.zeros(len(chunks), longest, dtype=torch.long)
        anchors = torch.empty(len(chunks), self._anchors, dtype=torch.long)
        for row, chunk in enumerate(chunks):
            tokens[row, : len(chunk.tokens)] = torch.tensor(chunk.tokens)
            drawn = torch.randperm(chunk.room(self._ahead), generator=generator)[: self._anchors]
            again = torch.arange(self._anchors) % len(drawn)  # a short chunk has some of them more than once
            anchors[row] = chunk.first + drawn[again].sort().values
        return Batch(tokens, anchors)


def text_fingerprint(texts: Sequence[Text]) -> str:
    """16 hexadecimal digits that differ for other tokens."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text.answer}:{','.join(map(str, text.tokens))};".encode())
    return digest.hexdigest()[:16]


def _cut(text: Text, length: int) -> list[Chunk]:
    starts = range(0, len(text.tokens), length)
    # The first guesses are those of the last token before the answer.
    return [Chunk(text.tokens[start : start + length], max(0, text.answer - 1 - start)) for start in starts]


def _order(seed: int, epoch: int, count: int) -> list[int]:
    order: list[int] = torch.randperm(count, generator=_generator(seed, 2 * epoch)).tolist()
    return order


def _generator(seed: int, number: int) -> torch.Generator:
    """Random numbers of their own for each number."""
    digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
