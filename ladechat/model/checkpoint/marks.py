"""The marks (control tokens) of a chat format: finding them in a text, and guarding a user's text against them.

A tokenizer reads `<|im_end|>` as the end of a turn wherever it occurs. So messages are guarded before a template
formats them: a character that occurs in no text is put into each mark, as in `<␟|im_end|>`. The template's own marks
have none. Its output is split at the guards, and the parts are tokenized one after another: `…<`, then `|im_end|>…`.
"""

import re
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from tokenizers import AddedToken

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

GUARD = "\udfff"
"""Half a surrogate pair: it occurs in no text, as UTF-8 cannot encode it."""
ROLE = re.compile(r"<([|｜])[^<>|｜\s]+\1>")
ANCHORS = ("\n", "a", ".")
"""One of these is put before a part while it is tokenized: at the beginning of a text some tokenizers add a space."""
BRACKETS = {"<": ">", "[": "]", "{": "}", "|": "|", "｜": "｜"}
REMEMBERED = 512
"""The most texts whose marks are cached: those of a conversation recur in every turn."""


class Marks:
    """The marks of a tokenizer."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer
        self._names: dict[int, AddedToken] = {}  # other added tokens are words and runs of spaces
        for number, token in tokenizer.added_tokens_decoder.items():
            content = str(token.content).strip()
            if len(content) > 1 and (token.special or looks_like_a_mark(content)):
                self._names[number] = token
        self.found = lru_cache(maxsize=REMEMBERED)(self._found)

    def guarded(self, text: str, only: Collection[int] | None = None) -> str:
        """Return a text with a guard in each mark, or in those with the given ids."""
        return GUARD.join(self._guarded(part, only) for part in text.split(GUARD))

    def may_be_part(self, text: str) -> bool:
        """Return whether a text could become part of a mark together with the text before or after it."""
        said, (names, beginnings, ends) = text.strip(), self._parts
        longest = range(1, max(map(len, names), default=0))
        return bool(said) and (
            any(said[:size] in ends or said[-size:] in beginnings for size in longest)
            or (len(said) in longest and any(said in name for name in names))
        )

    @cached_property
    def _parts(self) -> tuple[list[str], set[str], set[str]]:
        """The texts of the marks, with all their proper prefixes and suffixes."""
        names = [str(token.content).strip() for token in self._names.values()]
        cuts = [(name, cut) for name in names for cut in range(1, len(name))]
        return names, {name[:cut] for name, cut in cuts}, {name[cut:] for name, cut in cuts}

    def guarded_ends(self, text: str) -> str:
        """Return a text with a guard at both ends, inside the surrounding white space, which templates strip."""
        said = text.strip()
        start = len(text) - len(text.lstrip())
        return f"{text[:start]}{GUARD}{said}{GUARD}{text[start + len(said) :]}" if said else text

    def _guarded(self, text: str, only: Collection[int] | None) -> str:
        cuts = [cut for mark, cut in self.found(text) if only is None or mark in only]
        if not cuts:
            return text
        ends = zip([0, *cuts], [*cuts, len(text)], strict=True)
        return GUARD.join(self._guarded(text[start:end], only) for start, end in ends)

    def _found(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the id of each mark that the tokenizer finds in a text, and the index after its first character."""
        return tuple(self._places(text))

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        if not self._tokenizer.is_fast:
            # One pattern of all marks takes a second to compile where there are thousands.
            present = sorted((name for name in self._by_text if name in text), key=len, reverse=True)
            marks = re.compile("|".join(map(re.escape, present)) or "(?!)")
            yield from ((self._by_text[found[0]], found.start() + 1) for found in marks.finditer(text))
            return
        encoding = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        for number, (start, end) in zip(encoding["input_ids"], encoding["offset_mapping"], strict=True):
            if number in self._names:
                start = end - len(text[start:end].lstrip())  # some marks include the space before them
                if end - start > 1:
                    yield number, start + 1

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {str(token.content): number for number, token in self._names.items()}

    def ids_in(self, text: str) -> list[int]:
        """Return the ids of the marks in a text, in order."""
        return [number for number, _ in self.found(text)]

    def shown_among(self, token_ids: Collection[int]) -> list[int]:
        """Return those tokens that are marks and appear in decoded text: decoding leaves special tokens out."""
        return [number for number in token_ids if number in self._names and not self._names[number].special]

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text, without those that begin and end one. Guarded marks stay text."""
        first, *others = text.split(GUARD)
        return [*self._encode(first), *(token for part in others for token in self._encode_after(part))]

    def whole_text(self, text: str) -> list[int]:
        """Return the tokens of a user's text, with the tokenizer's own beginning, for use without a template."""
        return [*self.beginning, *self.tokenize(self.guarded(text))]

    @cached_property
    def beginning(self) -> list[int]:
        """The tokens that the tokenizer itself puts before a text."""
        bare, whole = (list(self._tokenizer.encode("a", add_special_tokens=special)) for special in (False, True))
        return next((whole[:start] for start in range(len(whole)) if whole[start : start + len(bare)] == bare), [])

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False)) if text else []

    def _encode_after(self, part: str) -> list[int]:
        """Return the tokens of a part that is not at the beginning of its text."""
        for anchor in ANCHORS if part else ():
            before, both = self._encode(anchor), self._encode(anchor + part)
            if before and both[: len(before)] == before:
                return both[len(before) :]
        return self._encode(part)


def is_role_mark(content: str) -> bool:
    """Return whether a token has the form of `<|im_start|>`, which occurs in no text by chance."""
    return content.startswith("<") and ROLE.fullmatch(content) is not None


def looks_like_a_mark(content: str) -> bool:
    """Return whether a token is in brackets, as marks are."""
    return len(content) > 1 and BRACKETS.get(content[0]) == content[-1]
