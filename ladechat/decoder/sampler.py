"""Which token comes next by the model's logits: the argmax, or a draw. Asked once for each emitted token, in order.

So a draft never costs a draw: the token is drawn first, and only then looked up among the drafts. With one seed, a
faster decoder samples what plain decoding samples. For drafts that are certain tokens this has the distribution of the
rejection scheme of Fu et al. 2024 (arXiv 2402.02057, section 3.2): a child x is followed with probability p(x), and
what is emitted otherwise is distributed as p without the children.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Processor = Callable[[Any, Any], Any]
"""Changes the scores of the next token: (ids (1, n) int64, scores (1, vocabulary) float32) → scores, as transformers'
`LogitsProcessor` does, whose types for the two are not those that it gets."""

Observer = Callable[[Tensor, Tensor], None]
"""Is shown the processed scores and the raw logits of an emitted token, both (1, vocabulary) float32."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen: processors in order, then the argmax or, with `sample`, a draw.

    `generator` is what draws; None is torch's own, which `torch.manual_seed` seeds.
    """

    processors: Sequence[Processor] = ()
    sample: bool = False
    generator: torch.Generator | None = None
    observe: Observer | None = None

    @property
    def is_argmax(self) -> bool:
        """Whether the argmax of the raw logits is all there is to it."""
        return not (self.processors or self.sample or self.observe)


GREEDY = Sampling()


def seed_of(answer: int, place: int) -> int:
    """The seed of one draw, from the seed of its answer and its place there: 64 bits, mixed."""
    return int.from_bytes(hashlib.blake2b(f"{answer}:{place}".encode(), digest_size=8).digest(), "little")


class Sampler:
    """Chooses the tokens of one text. Processors see the text as it stands at each token, never a draft.

    Args:
        text: token ids before the first one chosen, as processors see it: a row's padding belongs to it.
        sampling: how to choose; it may be assigned between any two tokens.
        seed: of the generator's random numbers. Those of a token depend on it and on the token's place in the answer
            alone, so an answer that was stopped goes on as if it had not been. None: the generator goes on as it is.
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
        """Go on with a token that is known to be the argmax of the raw logits."""
        self.text.append(token)
        return token

    def sample(self, logits: Tensor) -> int:
        """The token after the text so far, which it joins.

        Args:
            logits: (vocabulary,), of the model at the last token of the text.

        Raises:
            FloatingPointError: there is no distribution to draw from, as happens where a model overflows.
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
            assert generator is not None  # torch's own has other users
            generator.manual_seed(seed_of(self._seed, len(self.text) - self._begin))
        return int(torch.multinomial(probabilities, num_samples=1, generator=generator))

    def ids(self, device: torch.device) -> Tensor:
        """The text so far, (1, n) int64; only what is new is copied to the device."""
        new = torch.tensor([self.text[self._ids.shape[1] :]], dtype=torch.long, device="cpu")
        self._ids = torch.cat([self._ids.to(device), new.to(device)], dim=1)
        return self._ids
