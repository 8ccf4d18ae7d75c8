"""The tokenizer of a GGUF file, by llama.cpp itself: what it makes of a text is what the file means."""

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from tokenizers import AddedToken

from ladechat.model.checkpoint.marks import BRACKETS, is_role_mark, looks_like_a_mark
from ladechat.model.llama_cpp.model import PackedModel

UNKNOWN, NORMAL, CONTROL, USER_DEFINED = 1, 4, 8, 16
"""Bits of llama.h's `llama_token_attr`."""

SENTENCEPIECE = "llama"
"""The kind of tokenizer that puts a space before a text, and takes it away again from what it writes."""


class PackedTokenizer:
    """The part of a transformers tokenizer that chats need, over the vocabulary of an opened file.

    Attributes:
        chat_template: the file's, if it has one.
        is_fast: False: it gives no offsets of tokens in a text.
        joins_texts: a token of whole characters has the same text after any other: the bytes of tokens are joined.
    """

    is_fast = False
    joins_texts = True

    def __init__(self, model: PackedModel) -> None:
        self._model = model
        self.chat_template = model.chat_template
        self.bos_token_id, self.eos_token_id = (model.token_with_role(role) for role in ("bos", "eos"))
        spaced = model.fact("tokenizer.ggml.add_space_prefix") != "false"
        self._strips = spaced and model.fact("tokenizer.ggml.model") == SENTENCEPIECE
        self._pieces: dict[int, bytes] = {}
        # Converters write some marks as normal tokens. As such they would be split into letters in a prompt, and shown
        # as text where an answer should end.
        self._normal_marks = {
            token: token_id
            for token_id, token in enumerate(model.tokens)
            if token[:1] in BRACKETS and model.attributes[token_id] & NORMAL and self._is_mark(token)
        }
        longest_first = sorted(self._normal_marks, key=len, reverse=True)
        self._mark = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None

    def __len__(self) -> int:
        return self._model.vocabulary

    @cached_property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The control tokens and other marks, by id; decoding skips the special ones."""
        tokens, kinds = self._model.tokens, np.array(self._model.attributes)
        marks = set(self._normal_marks.values())
        found = {}
        for token_id in sorted({*np.flatnonzero(kinds & (UNKNOWN | CONTROL | USER_DEFINED)).tolist(), *marks}):
            special = bool(kinds[token_id] & (UNKNOWN | CONTROL)) or token_id in marks
            found[token_id] = AddedToken(tokens[token_id], normalized=False, special=special)
        return found

    @cached_property
    def all_special_ids(self) -> list[int]:
        """The tokens that decoding skips."""
        return [token_id for token_id, token in self.added_tokens_decoder.items() if token.special]

    @cached_property
    def special_tokens_map(self) -> dict[str, str]:
        """The tokens with a role, by transformers' names: a chat template may write them."""
        roles = {role: self._model.token_with_role(role) for role in ("bos", "eos", "pad")}
        return {f"{role}_token": self._model.tokens[found] for role, found in roles.items() if found is not None}

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return {token: token_id for token_id, token in enumerate(self._model.tokens)}

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token."""
        return self._vocabulary

    def convert_ids_to_tokens(self, token_id: int) -> str | None:
        """Return a token as the vocabulary writes it; None for an unknown id."""
        return self._model.tokens[token_id] if 0 <= token_id < len(self) else None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the tokens of a text, in which marks are recognised.

        With `add_special_tokens`, the token that begins a text comes first, if the file says so.
        """
        parts = [text] if self._mark is None else self._mark.split(text)
        ids: list[int] = []
        for number, part in enumerate(parts):
            if part in self._normal_marks:
                ids.append(self._normal_marks[part])
            elif part or not number:
                ids += self._model.tokenize(part, add_special_tokens and not number)
        return ids

    def decode(
        self, token_ids: Sequence[int], skip_special_tokens: bool = False, clean_up_tokenization_spaces: bool = False
    ) -> str:
        """Return the text of tokens: their bytes, joined; what is no UTF-8 becomes U+FFFD.

        `clean_up_tokenization_spaces` is transformers', and changes nothing.
        """
        left_out = self._special_ids if skip_special_tokens else frozenset[int]()
        text = b"".join(self._piece(one) for one in token_ids if one not in left_out).decode(errors="replace")
        return text.removeprefix(" ") if self._strips else text

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self.all_special_ids)

    def _piece(self, token_id: int) -> bytes:
        piece = self._pieces.get(token_id)
        if piece is None:
            known = 0 <= token_id < len(self)
            piece = self._pieces[token_id] = self._model.piece(token_id) if known else b""
        return piece

    def _is_mark(self, token: str) -> bool:
        return is_role_mark(token) or (looks_like_a_mark(token) and token in (self.chat_template or ""))
