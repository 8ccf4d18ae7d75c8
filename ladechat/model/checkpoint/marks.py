"""The marks of a chat format in a text: which tokens they are, and how a person's text is kept from becoming one.

A tokenizer takes `<|im_end|>` for the end of a turn wherever it stands. So what people say is guarded before a template
lays it out: a character that no text has is put into each mark, as in `<␟|im_end|>`. The template's own marks have
none. What it wrote is cut at the guards, and the parts are tokenized one after another: `…<`, then `|im_end|>…`.
"""

import re
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase

GUARD = "\udfff"
"""Half a surrogate pair: no text has one, as UTF-8 cannot write it."""
ROLE = re.compile(r"<([|｜])[^<>|｜\s]+\1>")
ANCHORS = ("\n", "a", ".")
"""One of these stands before a part while it is tokenized: at the beginning of a text some tokenizers add a space."""
BRACKETS = {"<": ">", "[": "]", "{": "}", "|": "|", "｜": "｜"}
REMEMBERED = 512
"""Texts whose marks are remembered: those of a conversation come again in every turn."""


class Marks:
    """The marks that a tokenizer knows."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._names = {number: token for number, token in tokenizer.added_tokens_decoder.items() if _is_mark(token)}
        self.found = lru_cache(maxsize=REMEMBERED)(self._found)

    def guarded(self, text: str, only: Collection[int] | None = None) -> str:
        """Return a text with a guard in each mark, or in those of some ids."""
        parts = text.split(GUARD)
        return GUARD.join(self._guarded(part, only) for part in parts)

    def may_be_part(self, text: str) -> bool:
        """Return whether a text could become part of a mark by what stands before it or after it."""
        said, (names, beginnings, ends) = text.strip(), self._parts
        longest = range(1, max(map(len, names), default=0))
        return bool(said) and (
            any(said[:size] in ends or said[-size:] in beginnings for size in longest)
            or (len(said) in longest and any(said in name for name in names))
        )

    @cached_property
    def _parts(self) -> tuple[list[str], set[str], set[str]]:
        """The marks as they are written, with all that they begin and end with."""
        names = [str(token.content).strip() for token in self._names.values()]
        cuts = [(name, cut) for name in names for cut in range(1, len(name))]
        return names, {name[:cut] for name, cut in cuts}, {name[cut:] for name, cut in cuts}

    def guarded_ends(self, text: str) -> str:
        """Return a text with a guard at both ends, within the space around it, which templates take away."""
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
        """The id of each mark that the tokenizer finds in a text, and the place after its first character."""
        return tuple(self._places(text))

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        if not self._tokenizer.is_fast:
            yield from self._occurrences(text)
            return
        encoding = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        for number, (start, end) in zip(encoding["input_ids"], encoding["offset_mapping"], strict=True):
            if number in self._names:
                start = end - len(text[start:end].lstrip())  # some marks take the space before them
                if end - start > 1:
                    yield number, start + 1

    def _occurrences(self, text: str) -> Iterator[tuple[int, int]]:
        places = ((text.find(token.content), number) for number, token in self._names.items())
        yield from ((number, place + 1) for place, number in sorted(places) if place >= 0)

    def ids_in(self, text: str) -> list[int]:
        """Return the ids of the marks in a text, in order."""
        return [number for number, _ in self.found(text)]

    def shown_among(self, token_ids: Collection[int]) -> list[int]:
        """Return those of some tokens that are marks and have a text: decoding leaves special tokens out."""
        return [number for number in token_ids if number in self._names and not self._names[number].special]

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text, without those that begin and end one. What is guarded becomes no mark."""
        first, *others = text.split(GUARD)
        return [*self._encode(first), *(token for part in others for token in self._encode_after(part))]

    def whole_text(self, text: str) -> list[int]:
        """Return the tokens of a text of a person's, as the tokenizer begins it where no template does."""
        return [*self.beginning, *self.tokenize(self.guarded(text))]

    @cached_property
    def beginning(self) -> list[int]:
        """What the tokenizer itself puts before a text."""
        bare, whole = (list(self._tokenizer.encode("a", add_special_tokens=special)) for special in (False, True))
        return next((whole[:start] for start in range(len(whole)) if whole[start : start + len(bare)] == bare), [])

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False)) if text else []

    def _encode_after(self, part: str) -> list[int]:
        """The tokens of a part that does not begin its text."""
        for anchor in ANCHORS if part else ():
            before, both = self._encode(anchor), self._encode(anchor + part)
            if before and both[: len(before)] == before:
                return both[len(before) :]
        return self._encode(part)


def _is_mark(token: AddedToken) -> bool:
    """Whether an added token is a mark, and not a word or a row of spaces that was added to the vocabulary."""
    content = str(token.content).strip()
    return len(content) > 1 and (token.special or looks_like_a_mark(content))


def is_role_mark(content: str) -> bool:
    """Whether a token is as `<|im_start|>`: no text has that by chance."""
    return content.startswith("<") and ROLE.fullmatch(content) is not None


def looks_like_a_mark(content: str) -> bool:
    """Whether a token is in brackets, as marks are."""
    return len(content) > 1 and BRACKETS.get(content[0]) == content[-1]
