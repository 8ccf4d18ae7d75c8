"""Texts cut into chunks, and the chunks of each step, which depend only on seed and step: a run can be resumed."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ladechat.train.options import TrainRefused

HELD_OUT = 0.05
"""The fraction of the chunks that is held out for measuring: the last ones. At most one text is in both parts."""

EVALUATION_SEED = 7919


class Text(NamedTuple):
    """Tokens, and where the answer begins among them: the tokens before it are read, not guessed."""

    tokens: list[int]
    answer: int = 0


class Chunk(NamedTuple):
    """A piece of a text.

    Attributes:
        tokens: the token ids.
        first: the first position that may be an anchor.
    """

    tokens: list[int]
    first: int

    def room(self, ahead: int) -> int:
        """Return the number of possible anchors: those with `ahead` guesses that can all be compared with the text."""
        return max(0, len(self.tokens) - ahead - 1 - self.first)


@dataclass(frozen=True, slots=True)
class Batch:
    """The chunks of one step, padded at the right, and their anchors.

    Attributes:
        tokens: (B, T) int64.
        anchors: (B, A) int64 positions in ascending order; the guesses of a read the tokens at a + 2, a + 3 …
    """

    tokens: torch.Tensor
    anchors: torch.Tensor

    def targets(self, ahead: int) -> torch.Tensor:
        """Return the tokens that the guesses of the anchors should equal, (k, B·A)."""
        return self.at(self.tokens, range(2, ahead + 2))

    def at(self, values: torch.Tensor, offsets: Sequence[int]) -> torch.Tensor:
        """Return the values (B, T, …) at these offsets from each anchor, (len(offsets), B·A, …)."""
        rows = torch.arange(len(self.tokens), device=self.tokens.device)[:, None]
        return torch.stack([values[rows, self.anchors + offset].flatten(0, 1) for offset in offsets])

    def to(self, device: torch.device) -> "Batch":
        """Return the same batch on a device."""
        return Batch(self.tokens.to(device), self.anchors.to(device))


class Chunks:
    """The chunks of some texts, of up to `length` tokens each: those to train on, and those held out to measure on. In
    each chunk `anchors` places are chosen, after which `ahead` tokens are guessed.

    Raises:
        TrainRefused: there are too few chunks.
    """

    def __init__(self, texts: Sequence[Text], length: int, ahead: int, anchors: int) -> None:
        self._ahead = ahead
        found = [chunk for text in texts for chunk in _cut(text, length)]
        wanted = max(1, min(anchors, length - ahead - 1))
        usable = [chunk for chunk in found if chunk.room(ahead) >= min(wanted, 8)]
        if len(usable) < 2:
            raise TrainRefused(
                f"{sum(len(text.tokens) for text in texts):,} tokens make fewer than two chunks of up to {length} "
                "tokens, one to train on and one to measure on; give more with --tokens or --text."
            )
        self._anchors = wanted
        held = max(1, round(HELD_OUT * len(usable)))
        self.training, self.held_out = usable[:-held], usable[-held:]

    @property
    def tokens(self) -> int:
        """The number of tokens to train on."""
        return sum(len(chunk.tokens) for chunk in self.training)

    def step(self, seed: int, number: int, size: int) -> Batch:
        """Return the batch of a step: each pass over the chunks has every chunk once, in an order of its own."""
        count = len(self.training)
        places = range(number * size, (number + 1) * size)
        orders = {epoch: _order(seed, epoch, count) for epoch in {place // count for place in places}}
        chosen = [self.training[orders[place // count][place % count]] for place in places]
        return self._batch(chosen, _generator(seed, 2 * number + 1))

    def evaluation(self, size: int, most: int | None = None) -> list[Batch]:
        """Return the held-out chunks in batches, always with the same anchors; at most `most` chunks, evenly spread."""
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
            again = torch.arange(self._anchors) % len(drawn)  # a short chunk has some anchors more than once
            anchors[row] = chunk.first + drawn[again].sort().values
        return Batch(tokens, anchors)


def text_fingerprint(texts: Sequence[Text]) -> str:
    """Return 16 hexadecimal digits that differ for other tokens."""
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
    """Return a generator with random numbers of its own for each number."""
    digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
