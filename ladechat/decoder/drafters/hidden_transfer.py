"""Hidden transfer: Wu et al. 2024 (arXiv 2404.12022). Linear maps half-way up the model make hidden states of future
tokens; these pseudo rows go through the remaining layers in the same pass that verifies the previous drafts.

The last accepted slot is not known before the pass, so all slots carry pseudo rows, or the first few, which are most
likely to be accepted. Where the last accepted slot has none, the next pass has nothing to verify.

The layer lens shows how a guess comes about: the token that its row would predict at each layer, through the model's
own final norm and output layer ("logit lens", nostalgebraist 2020).
"""

from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor

from ladechat.decoder.drafters.drafter import PassResult
from ladechat.decoder.drafters.heads import HeadsDrafter
from ladechat.decoder.hidden import Hidden, TransferMaps, Want
from ladechat.decoder.step import LensSnapshot
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
        self._lens: LensSnapshot | None = None

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set `nodes` and `carriers`."""
        super().configure(parameters)
        self.carriers = parameters.get("carriers", self.carriers)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        super().begin(text, prompt_length)
        self._lens = None

    def want(self, tree: SlotTree) -> Want:
        """Request pseudo rows on the first slots of the tree."""
        return Want(self._maps, range(min(len(tree), self.carriers)), self.lens)

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Make the guesses for the next pass. The snapshot shows how the guesses that this pass judged came about."""
        self.snapshot, self._lens = self._lens, None
        super().observe(result, slots)
        if self._guesses and result.hidden is not None and result.hidden.below:
            self._lens = self._looked_at(result.hidden, result.leaf, result.tokens[-1])

    @torch.inference_mode()
    def _looked_at(self, hidden: Hidden, leaf: int, after: int) -> LensSnapshot:
        """Return the tokens that the pseudo rows of one slot predict at each layer; at the top, the best guesses."""
        place, first = list(hidden.carriers).index(leaf), self._maps.layers[0]
        below = [states[:, place] for states in hidden.below]
        best = iter(hidden.read(hidden.norm(torch.cat(below))).argmax(-1).tolist())
        rows = [tuple(islice(best, len(states))) for states in below]
        top = tuple(guesses[0] for guesses in self._guesses)
        return LensSnapshot(after, tuple(range(first, first + len(rows) + 1)), (*rows, top))

    @torch.inference_mode()
    def _read(self, result: PassResult, leaf: int) -> Tensor | None:
        hidden = result.hidden
        if hidden is None or hidden.pseudo is None or leaf not in hidden.carriers:
            return None
        return hidden.read(hidden.pseudo[list(hidden.carriers).index(leaf)])
