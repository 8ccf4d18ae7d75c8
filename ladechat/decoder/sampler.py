"""The sampler: chooses the next token by the model's logits, as the argmax or a draw, once for each emitted token.

A draft never costs a draw: the token is drawn first, and only then looked up among the drafts. So with the same seed
every decoder samples what plain decoding samples. For deterministic drafts this has the distribution of the rejection
scheme of Fu et al. 2024 (arXiv 2402.02057, section 3.2): a child x is followed with probability p(x), and otherwise the
emitted token is distributed as p without the children.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Processor = Callable[[Any, Any], Any]
"""Changes the scores of the next token: (ids (1, n) int64, scores (1, vocabulary) float32) → scores, as transformers'
`LogitsProcessor` does. `Any`, because transformers annotates the two with types other than those it passes."""

Observer = Callable[[Tensor, Tensor], None]
"""Receives the processed scores and the raw logits of an emitted token, both (1, vocabulary) float32."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings for choosing tokens: processors in order, then the argmax or, with `sample`, a draw.

    `generator` draws; None is torch's global generator, which `torch.manual_seed` seeds.
    """

    processors: Sequence[Processor] = ()
    sample: bool = False
    generator: torch.Generator | None = None
    observe: Observer | None = None

    @property
    def is_argmax(self) -> bool:
        """Whether a token is simply the argmax of the raw logits."""
        return not (self.processors or self.sample or self.observe)


GREEDY = Sampling()


def seed_of(answer: int, place: int) -> int:
    """Return the 64-bit seed of one draw: a hash of its answer's seed and its place in the answer."""
    return int.from_bytes(hashlib.blake2b(f"{answer}:{place}".encode(), digest_size=8).digest(), "little")


class Sampler:
    """Chooses the tokens of one text. Processors see the emitted text up to each token, never a draft.

    Args:
        text: token ids before the first one chosen, as processors see them: including a row's padding.
        sampling: how to choose; may be assigned between any two tokens.
        seed: seeds the draws. A token's draw depends only on it and on the token's place in the answer, so an
            interrupted answer continues as if it had not been. None: the generator continues in its current state.
        answered: how many tokens at the end of `text` are the answer's.
    """

    def __init__(
        self, text: Sequence[int], sampling: Sampling = GREEDY, seed: int | None = None, answered: int = 0
    ) -> None:
        self.text = list(text)
        self.sampling = sampling
        self._seed = seed
        self._begin = len(self.text) - answered
        self._ids = torch.empty((1, 0), dtype=torch.long, device="cpu")

    def take(self, token: int) -> int:
        """Append a token that is known to be the argmax of the raw logits, and return it."""
        self.text.append(token)
        return token

    def sample(self, logits: Tensor) -> int:
        """Choose the token after the text so far, append it to the text and return it.

        Args:
            logits: (vocabulary,) the model's logits at the last token of the text.

        Raises:
            FloatingPointError: the probabilities are NaN, as happens where a model overflows.
        """
        raw = logits[None].to(dtype=torch.float32, copy=True)
        scores = raw
        for process in self.sampling.processors:
            scores = process(self.ids(raw.device), scores)
        if self.sampling.observe is not None:
            self.sampling.observe(scores, raw)
        return self.take(self._draw(scores) if self.sampling.sample else int(scores.argmax()))

    def _draw(self, scores: Tensor) -> int:
        probabilities = torch.softmax(scores, dim=-1)
        if not bool(probabilities.isfinite().all()):
            raise FloatingPointError("the model's logits are not finite; another --dtype may help.")
        generator = self.sampling.generator
        if self._seed is not None:
            assert generator is not None  # the global generator has other users
            generator.manual_seed(seed_of(self._seed, len(self.text) - self._begin))
        return int(torch.multinomial(probabilities, num_samples=1, generator=generator))

    def ids(self, device: torch.device) -> Tensor:
        """Return the text so far, (1, n) int64; only new tokens are copied to the device."""
        new = torch.tensor([self.text[self._ids.shape[1] :]], dtype=torch.long, device="cpu")
        self._ids = torch.cat([self._ids.to(device), new.to(device)], dim=1)
        return self._ids
