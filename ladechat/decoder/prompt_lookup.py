"""Prompt lookup decoding (Saxena 2023): what followed the same words earlier in the text is the guess."""

from collections.abc import Iterator, Sequence

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Source, Step
from ladechat.decoder.verification import begin, verify
from ladechat.decoder.verify_mask import chain_layout


class PromptLookupDecoder:
    """Drafts up to `length` tokens from the latest place where the text's last tokens, at most `match`, stood before.

    `length` and `match` may be assigned between any two steps. The defaults draft as much as transformers' does with
    `prompt_lookup_num_tokens=10`.
    """

    def __init__(self, runner: Runner, length: int = 10, match: int = 2) -> None:
        self.runner = runner
        self.length = length
        self.match = match

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        selector, ending = begin(self.runner, prompt, limits, selector, drafting="Prompt lookup")
        text, asked = list(prompt), len(prompt) - generated
        while ending.room > 0:
            start = continuation(text, self.match)
            length = min(self.length, ending.room - 1, self.runner.reach - 1)
            draft = [] if start is None else text[start : start + length]
            source: Source = "prompt" if start is not None and start < asked else "accepted"
            tree = CandidateTree()
            tree.add(draft, source)
            verified = verify(self.runner, chain_layout(text[-1], tree), tree, selector, ending)
            yield verified.step(tree)
            if verified.ended:
                return
            text.extend(verified.tokens)


def continuation(text: Sequence[int], match: int) -> int | None:
    """Where the text goes on after the latest earlier place that ends like it: as many tokens alike as can be.

    None if not even its last token stood there before.
    """
    for length in range(min(match, len(text) - 1), 0, -1):
        suffix = list(text[-length:])
        for end in range(len(text) - 1, length - 1, -1):
            if text[end - 1] == suffix[-1] and list(text[end - length : end]) == suffix:
                return end
    return None
