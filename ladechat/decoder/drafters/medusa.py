"""Medusa-1: Cai et al. 2024 (arXiv 2401.10774), section 2.2.1. Trained heads on the last hidden state guess ahead."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

from ladechat.decoder.drafters.drafter import PassResult
from ladechat.decoder.drafters.heads import HeadsDrafter
from ladechat.decoder.hidden import Want
from ladechat.decoder.verify_mask import SlotTree

SOURCE = "medusa"


@dataclass(frozen=True, slots=True)
class MedusaHeads:
    """Residual blocks before the model's own output layer, as in the authors' trainer.

    Attributes:
        weights: (k, d, d).
        biases: (k, d).
    """

    weights: Tensor
    biases: Tensor

    def __call__(self, states: Tensor) -> Tensor:
        """Map hidden states (…, d) to inputs of the output layer, (k, …, d): ``x + SiLU(W x + b)``."""
        added = torch.einsum("kde,...e->k...d", self.weights, states)
        return states + silu(added + self.biases.view(len(self.biases), *[1] * (states.dim() - 1), -1))


class MedusaDrafter(HeadsDrafter):
    """Guesses with heads. Its drafts are verified like any others, so the text is the model's own.

    Args:
        heads: trained for this model, on its device.
        chances: see `HeadsDrafter`.
        nodes: the most drafted tokens in a pass.
    """

    def __init__(self, heads: MedusaHeads, chances: Sequence[Sequence[float]], nodes: int = 16) -> None:
        super().__init__(SOURCE, chances, nodes)
        self._heads = heads

    def want(self, tree: SlotTree) -> Want:
        """Request hidden states, without pseudo rows."""
        return Want()

    @torch.inference_mode()
    def _read(self, result: PassResult, leaf: int) -> Tensor | None:
        hidden = result.hidden
        return None if hidden is None else hidden.read(self._heads(hidden.states[leaf]))
