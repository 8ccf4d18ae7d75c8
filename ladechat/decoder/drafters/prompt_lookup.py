"""Prompt lookup decoding (Saxena 2023): guesses what followed the same tokens earlier in the text."""

from collections.abc import Mapping, Sequence

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, Proposal, Room
from ladechat.decoder.drafters.places import NOWHERE, Places

CHANCE = 0.6


class PromptLookupDrafter(Drafter):
    """Copies up to `length` tokens from after the latest earlier occurrence of the last tokens, at most `match`.

    After ``the cat sat. the cat`` with a match of 2 it proposes ``sat . the cat``. The defaults draft as much as
    transformers does with `prompt_lookup_num_tokens=10`.

    Occurrences are found in two tables, of single tokens and of pairs, to which new text is added. The entries of the
    common prefix with the previous text are reused.
    """

    def __init__(self, length: int = 10, match: int = 2) -> None:
        self.length, self.match = length, match
        self._text: Sequence[int] = ()
        self._prompt_length = 0
        self._tables = (Places(1), Places(2))

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set how many tokens are copied from `window`; how many have to match from `ngram`, which is one more."""
        self.length, self.match = parameters.get("window", self.length), parameters.get("ngram", self.match + 1) - 1

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        same = common_prefix(self._text, text)
        for table in self._tables:
            table.cut(self._text, same)
        self._text, self._prompt_length = text, prompt_length

    def propose(self, room: Room) -> Proposal:
        start = self._continuation()
        if start == NOWHERE:
            return Proposal(())
        source = "prompt" if start < self._prompt_length else "accepted"
        copied = self._text[start : start + min(self.length, room.depth)]
        return Proposal([Node(i - 1 if i else ROOT, token, source, "lookup", CHANCE) for i, token in enumerate(copied)])

    def _continuation(self) -> int:
        """Return the index after the latest earlier occurrence of the text's end, with the longest match.

        `NOWHERE` if not even its last token occurred before.
        """
        for table in self._tables:
            table.read(self._text)
        one, two = (table.before[len(self._text)] for table in self._tables)
        if two == NOWHERE or self.match < 2:
            return one
        best, longest, place = two, 2, two
        while place != NOWHERE and longest < self.match:
            alike = self._alike(place)
            if alike > longest:
                best, longest = place, alike
            place = self._tables[1].before[place]
        return best

    def _alike(self, place: int) -> int:
        """Return how many tokens before a place equal those at the text's end, at most `match`."""
        text, count = self._text, 0
        while count < min(self.match, place) and text[place - 1 - count] == text[-1 - count]:
            count += 1
        return count
