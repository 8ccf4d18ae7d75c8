"""Jacobi decoding: Song et al. 2021 and Santilli et al. 2023 (arXiv 2305.10427), the iteration without a memory.

A block of tokens is guessed, one pass says what the model would write after each of them, and that is the next guess.
What agrees from the left on is text. It is lookahead decoding less the n-grams: a token that comes out right behind a
wrong one is lost again, and with it most of the gain.
"""

from collections.abc import Iterator, Sequence

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Step, WindowSnapshot
from ladechat.decoder.verification import begin, verify
from ladechat.decoder.verify_mask import chain_layout


class JacobiDecoder:
    """A block of tokens as one guess, improved from pass to pass; one to `block` + 1 tokens a step.

    `block` may be assigned between any two steps.
    """

    def __init__(self, runner: Runner, block: int = 5) -> None:
        self.runner = runner
        self.block = block

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        selector, ending = begin(self.runner, prompt, limits, selector, drafting="Jacobi decoding")
        last, iterate = prompt[-1], list[int]()
        while ending.room > 0:
            # The last place of what is left needs no guess: the model's own token fills it.
            length = min(self.block, ending.room - 1, self.runner.reach - 1)
            iterate = [*iterate[:length], *[last] * (length - len(iterate))]
            tree = CandidateTree()
            tree.add(iterate, "window")
            verified = verify(self.runner, chain_layout(last, tree), tree, selector, ending)
            fresh = tuple(verified.likeliest)
            yield verified.step(tree, WindowSnapshot(((last, *iterate),), fresh))
            if verified.ended:
                return
            last, iterate = verified.tokens[-1], list(fresh[len(verified.tokens) :])
