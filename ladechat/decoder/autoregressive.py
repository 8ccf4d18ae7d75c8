"""Plain decoding, one token a pass: what every faster decoder must equal, and what its speedup is measured against."""

from collections.abc import Iterator, Sequence

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Step
from ladechat.decoder.verification import begin, verify
from ladechat.decoder.verify_mask import causal_layout


class AutoregressiveDecoder:
    """One token a step, and nothing drafted."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        selector, ending = begin(self.runner, prompt, limits, selector)
        token, nothing = prompt[-1], CandidateTree()
        while ending.room > 0:
            verified = verify(self.runner, causal_layout([token]), nothing, selector, ending)
            yield verified.step()
            token = verified.tokens[-1]
            if verified.ended:
                return
