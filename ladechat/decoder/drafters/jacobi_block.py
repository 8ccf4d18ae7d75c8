"""Jacobi decoding: Song et al. 2021 and Santilli et al. 2023 (arXiv 2305.10427), the iteration without a memory.

A block of tokens is guessed, one pass gives the model's token after each of them, and these are the next guess. The
prefix on which both agree is accepted. It is lookahead decoding without the n-grams: a right token after a wrong one is
lost again, and with it most of the gain.
"""

from collections.abc import Mapping, Sequence

from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, PassResult, Proposal, Room
from ladechat.decoder.step import WindowSnapshot

CHANCE = 0.2


class JacobiBlockDrafter(Drafter):
    """Proposes a block of tokens as one guess, improved from pass to pass."""

    def __init__(self, block: int = 5) -> None:
        self.block = block
        self._text: Sequence[int] = ()
        self._iterate: list[int] = []

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set the length of the block from `window`."""
        self.block = parameters.get("window", self.block)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text, self._iterate = text, []

    def propose(self, room: Room) -> Proposal:
        length = min(self.block, room.depth)
        self._iterate = [*self._iterate[:length], *[self._text[-1]] * (length - len(self._iterate))]
        chain = enumerate(self._iterate)
        return Proposal(
            [Node(i - 1 if i else ROOT, token, "window", "jacobi", CHANCE) for i, token in chain], whole=True
        )

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        fresh = tuple(result.argmax[slot] for slot in (0, *slots))
        self.snapshot = WindowSnapshot(((result.tree.tokens[0], *self._iterate),), fresh)
        self._iterate = list(fresh[len(result.tokens) :])
