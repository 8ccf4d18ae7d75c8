"""Prompt lookup decoding (Saxena 2023): what followed the same words earlier in the text is the guess."""

from collections.abc import Mapping, Sequence

from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, Proposal, Room

CHANCE = 0.6


class PromptLookupDrafter(Drafter):
    """Copies up to `length` tokens from the latest place where the last tokens, at most `match`, stood before.

    After ``the cat sat. the cat`` with a match of 2 it proposes ``sat . the cat``. The defaults draft as much as
    transformers' does with `prompt_lookup_num_tokens=10`.
    """

    def __init__(self, length: int = 10, match: int = 2) -> None:
        self.length, self.match = length, match
        self._text: Sequence[int] = ()
        self._prompt_length = 0

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Take the length from `window`, and one more than the match from `ngram`."""
        self.length, self.match = parameters.get("window", self.length), parameters.get("ngram", self.match + 1) - 1

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text, self._prompt_length = text, prompt_length

    def propose(self, room: Room) -> Proposal:
        start = continuation(self._text, self.match)
        if start is None:
            return Proposal(())
        source = "prompt" if start < self._prompt_length else "accepted"
        copied = self._text[start : start + min(self.length, room.depth)]
        return Proposal([Node(i - 1 if i else ROOT, token, source, "lookup", CHANCE) for i, token in enumerate(copied)])


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
