"""Tokens to text, as they come: no half character is shown, and nothing shown is ever taken back."""

from collections.abc import Sequence
from functools import lru_cache

from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

UNDECODABLE = "\ufffd"


class Detokenizer:
    """Decodes one answer. All pieces and `finish()`, joined, are exactly `tokenizer.decode` of all its tokens.

    A token is decoded behind the last ones shown, because its text may depend on having neighbours: SentencePiece drops
    the space of a first token. It waits while what it says may still change: a character whose last bytes are missing,
    or a run of byte-fallback tokens, which is decoded as a whole, so that its next byte may spoil all of it.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = special_ids(tokenizer)
        self._shown: list[int] = []
        self._shown_text = ""
        self._waiting: list[int] = []

    def push(self, token_ids: Sequence[int]) -> list[str]:
        """One piece of text for each token; a token that completes others brings theirs along, which were empty."""
        return [self._push(token_id) for token_id in token_ids]

    def finish(self) -> str:
        """What still waited."""
        piece = self._decode(self._shown + self._waiting)[len(self._shown_text) :]
        self._shown, self._shown_text, self._waiting = [], "", []
        return piece

    def _push(self, token_id: int) -> str:
        token = self._tokenizer.convert_ids_to_tokens(token_id)
        if token_id in self._special or token is None:
            return ""
        self._waiting.append(token_id)
        if is_byte_fallback(str(token)):
            return ""
        text = self._decode(self._shown + self._waiting)
        if text.endswith(UNDECODABLE):
            return ""
        piece = text[len(self._shown_text) :]
        alone = self._decode(self._waiting)
        if alone:
            self._shown, self._shown_text = self._waiting, alone
        else:
            self._shown, self._shown_text = self._shown + self._waiting, text
        self._waiting = []
        return piece

    def _decode(self, token_ids: list[int]) -> str:
        text = self._tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


class TokenNames:
    """Single tokens as a panel shows them: with their leading space, special tokens by name, lone bytes as ‹E4›."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = special_ids(tokenizer)
        self._anchor = tokenizer.encode("a", add_special_tokens=False)
        self._anchor_text = str(tokenizer.decode(self._anchor))
        self._byte_of = {character: byte for byte, character in bytes_to_unicode().items()}
        self.name = lru_cache(maxsize=65_536)(self._name)

    def names(self, token_ids: Sequence[int]) -> list[str]:
        """One name a token."""
        return [self.name(token_id) for token_id in token_ids]

    def _name(self, token_id: int) -> str:
        token = self._tokenizer.convert_ids_to_tokens(token_id)
        if not isinstance(token, str):  # models round their vocabularies up
            return f"‹{token_id}›"
        if token_id in self._special:
            return token
        if is_byte_fallback(token):
            value = int(token[3:5], 16)
            return chr(value) if value < 0x80 else f"‹{value:02X}›"
        text = str(self._tokenizer.decode([*self._anchor, token_id], clean_up_tokenization_spaces=False))
        text = text[len(self._anchor_text) :]
        if UNDECODABLE not in text:
            return text
        raw = bytes(self._byte_of[character] for character in token if character in self._byte_of)
        return "".join(map(_lone_byte_by_number, raw.decode("utf-8", "surrogateescape")))


def _lone_byte_by_number(character: str) -> str:
    """`surrogateescape` puts each byte that is no part of a character at U+DC00 above its value."""
    value = ord(character) - 0xDC00
    return f"‹{value:02X}›" if 0x80 <= value <= 0xFF else character


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every token that decoding skips: also those that the vocabulary marks and no role (end, unknown …) names."""
    marked = (token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special)
    return frozenset([*tokenizer.all_special_ids, *marked])


def is_byte_fallback(token: str) -> bool:
    """Is this token the single byte that SentencePiece writes as `<0xE4>`?"""
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")
