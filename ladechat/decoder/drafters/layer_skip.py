"""Self-speculative decoding: Zhang et al. 2023, "Draft & Verify" (arXiv 2309.08168). The model drafts for itself with
some of its layers skipped, one token per pass, and verifies the chain in one pass with all of them.

A draft ends early at a token of low probability. The threshold is adapted ("adaptive draft-exiting") so that about nine
of ten drafts are accepted. The constants are those of the authors' program (`decoding.py`). As there, the token that
ends a draft is verified too, since its pass has been spent.
"""

from collections.abc import Sequence, Set

from ladechat.decoder.drafters.drafter import NOTHING, ROOT, BoundedDrafter, Node, PassResult, Proposal, Room
from ladechat.decoder.layer_skipping_model import LayerSkippingModel

SOURCE = "layer_skip"

FIRST_THRESHOLD = 0.8
WANTED_ACCEPTANCE = 0.9
ACCEPTANCE_MEMORY = 0.5
"""The weight of the acceptance rate so far against that of the latest pass."""
THRESHOLD_STEP, THRESHOLD_MEMORY = 0.01, 0.9
"""The threshold moves towards a value one step higher or lower, with this weight on its old value: by a thousandth per
pass."""
BANDS = 10
"""Bands of probability, each with its own acceptance rate."""


def default_skipped(layers: int) -> frozenset[int]:
    """Return every second layer between the first quarter and the last: a guess, until a search finds better ones."""
    return frozenset(range(layers // 4, layers - layers // 4, 2)) if layers > 1 else frozenset()


class LayerSkipDrafter(BoundedDrafter):
    """Drafts a chain with the model itself. Each drafted token costs a (shorter) pass.

    Args:
        model: the model that drafts.
        skipped: indices of the layers skipped in drafting, from 0; None is `default_skipped`.
        nodes: the most drafted tokens in a pass.

    Attributes:
        threshold: a token of lower probability ends a draft; adapted with every pass.

    Raises:
        ValueError: `skipped` names layers that the model does not have, or all of them.
    """

    def __init__(self, model: LayerSkippingModel, skipped: Set[int] | None = None, nodes: int = 8) -> None:
        self.skipped = default_skipped(model.layers) if skipped is None else frozenset(skipped)
        if not self.skipped < frozenset(range(model.layers)):
            raise ValueError(f"Some of {model.layers} layers can be skipped, not {sorted(self.skipped)}.")
        self.nodes, self.threshold = nodes, FIRST_THRESHOLD
        self._model = model
        self._text: Sequence[int] = ()
        self._most = 0
        self._acceptance = 0.0

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text = text

    def propose(self, room: Room) -> Proposal:
        """Return a chain. Acceptance rates are learnt per band of the draft model's probability."""
        self._most = min(self.nodes, room.depth)
        if self._most < 1:
            return NOTHING
        drafted = self._model.draft(self._text[-1], self.skipped, self._most, self.threshold)
        return Proposal(
            [
                Node(ROOT if index == 0 else index - 1, token, SOURCE, (SOURCE, band(probability)), probability)
                for index, (token, probability) in enumerate(drafted)
            ]
        )

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Adapt the threshold to the share of drafts that was accepted."""
        verified = [slot for slot in slots if slot >= 0]
        if verified:
            accepted = len(set(result.path).intersection(verified))
            self._adapt(accepted / len(verified), at_most=len(verified) == self._most)

    def _adapt(self, acceptance: float, *, at_most: bool) -> None:
        """Raise the threshold where too few drafts are accepted, else lower it, unless drafts have full length."""
        self._acceptance += (1 - ACCEPTANCE_MEMORY) * (acceptance - self._acceptance)
        step = 0.0 if at_most else -THRESHOLD_STEP
        if self._acceptance < WANTED_ACCEPTANCE:
            step = THRESHOLD_STEP
        self.threshold = min(max(self.threshold + (1 - THRESHOLD_MEMORY) * step, 0.0), 1.0)


def band(probability: float) -> int:
    """Return the index of the band that a probability lies in, 0 to `BANDS` - 1."""
    return min(int(probability * BANDS), BANDS - 1)
