"""Hidden transfer: Wu et al. 2024 (arXiv 2404.12022). Linear maps half-way up the model make hidden states of the
tokens to come; these pseudo rows go through the remaining layers with the pass that verifies the drafts made before.

Which slot will be the last accepted one is not known before the pass, so all of them carry pseudo rows, or the first
few, which are the likeliest. Where a slot without them is the last, the next pass has nothing to verify.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ladechat.decoder.drafters.drafter import Outcome
from ladechat.decoder.drafters.heads import HeadsDrafter
from ladechat.decoder.hidden import TransferMaps, Want
from ladechat.decoder.verify_mask import SlotTree

SOURCE = "hidden_transfer"


class HiddenTransferDrafter(HeadsDrafter):
    """Guesses with pseudo rows.

    Args:
        maps: trained for this model, on its device.
        chances: see `HeadsDrafter`.
        nodes: the most drafted tokens in a pass.
        carriers: the most slots of a pass that carry pseudo rows.
    """

    def __init__(
        self, maps: TransferMaps, chances: Sequence[Sequence[float]], nodes: int = 16, carriers: int = 64
    ) -> None:
        super().__init__(SOURCE, chances, nodes)
        self._maps, self.carriers = maps, carriers

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Take `nodes` and `carriers`."""
        super().configure(parameters)
        self.carriers = parameters.get("carriers", self.carriers)

    def want(self, tree: SlotTree) -> Want:
        """Pseudo rows on the first slots of the tree."""
        return Want(self._maps, range(min(len(tree), self.carriers)))

    @torch.inference_mode()
    def _read(self, outcome: Outcome, leaf: int) -> Tensor | None:
        hidden = outcome.hidden
        if hidden is None or hidden.pseudo is None or leaf not in hidden.carriers:
            return None
        return hidden.read(hidden.pseudo[list(hidden.carriers).index(leaf)])
