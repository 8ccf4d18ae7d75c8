"""Turns tokens into text as they come: no incomplete character is shown, and no shown text is taken back."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_T = TypeVar("_T")

UNDECODABLE = "\ufffd"
CACHED_TEXTS, CACHED_BEGINNINGS = 65_536, 1024
LEARNT_TEXTS = CACHED_TEXTS // 2
"""How many texts are learnt in advance; the rest of the room is for tokens that are met later."""

_stand_ins = count(256)
BYTES = {chr(byte if chr(byte).isprintable() and byte != ord(" ") else next(_stand_ins)): byte for byte in range(256)}
"""The bytes by the characters that byte-level BPE writes for them: a visible one stands for itself."""


class Detokenizer:
    """Decodes one answer. All pieces and `finish()`, joined, are exactly `tokenizer.decode` of all its tokens.

    A token is decoded after the last ones shown, because its text may depend on its neighbours: SentencePiece drops the
    space of a first token. It is held back while its text may still change: a character whose last bytes are missing,
    or a run of byte-fallback tokens, which is decoded as a whole, so that its next byte may spoil all of it. (The
    `DecodeStream` of tokenizers shows that run too early, and raises an error where it has to be taken back.)

    Most tokens have the same text after any others: `texts` caches it, and the tokenizer is not called. Such a call is
    slow, because the forward pass has evicted the tokenizer's data from the processor's caches.
    """

    def __init__(self, texts: "TokenTexts") -> None:
        self._texts = texts
        self._shown: list[int] = []
        self._shown_text = ""
        self._waiting: list[int] = []
        self._early = ""

    def resume(self, token_ids: Sequence[int], shown: str) -> None:
        """Continue after tokens whose text, `shown`, has been shown already."""
        text = "".join(self.push(token_ids))
        self._early = shown[len(text) :].rstrip(UNDECODABLE) if shown.startswith(text) else ""

    def pause(self) -> str:
        """Return the text that was held back, less an incomplete character, for an answer that may be continued."""
        shown_before = self._early
        if self._waiting:
            text = self._texts.decode(self._shown + self._waiting)[len(self._shown_text) :]
            self._early = text.rstrip(UNDECODABLE)
        return self._early.removeprefix(shown_before)

    def push(self, token_ids: Sequence[int]) -> list[str]:
        """Return one piece of text for each token. That of a token held back is empty; its text comes later."""
        return [self._push(token_id) for token_id in token_ids]

    def finish(self) -> str:
        """Return the text that was held back, an incomplete character included."""
        if not self._waiting:  # the usual case: no slow call of the tokenizer
            self._shown, self._shown_text = [], ""
            return ""
        piece = self._texts.decode(self._shown + self._waiting)[len(self._shown_text) :].removeprefix(self._early)
        self._shown, self._shown_text, self._waiting, self._early = [], "", [], ""
        return piece

    def _push(self, token_id: int) -> str:
        if self._shown_text and not self._waiting:
            piece = self._texts.after_any(token_id)
            if piece is not None:
                if piece:
                    self._shown, self._shown_text = self._texts.anchored(token_id, piece)
                return piece
        return self._ask(token_id)

    def _ask(self, token_id: int) -> str:
        token = self._texts.token(token_id)
        if token is None:
            return ""
        self._waiting.append(token_id)
        if is_byte_fallback(token):
            return ""
        waiting = tuple(self._waiting)
        text = self._texts.decode(self._shown + self._waiting) if self._shown else self._texts.alone(waiting)
        if text.endswith(UNDECODABLE):
            return ""
        piece = text[len(self._shown_text) :]
        alone = self._texts.alone(waiting)
        if alone:
            self._shown, self._shown_text = self._waiting, alone
        else:
            self._shown, self._shown_text = self._shown + self._waiting, text
        early, self._waiting, self._early = self._early, [], ""
        return piece.removeprefix(early)


class _Cached(dict[int, _T]):
    """A cache of texts of tokens that drops its oldest entry when full. An `lru_cache` records every use, which touches
    more memory: that counts where a pass has evicted it from the processor's caches.
    """

    def __init__(self, ask: Callable[[int], _T]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, token_id: int) -> _T:
        if len(self) == CACHED_TEXTS:
            del self[next(iter(self))]
        said = self[token_id] = self._ask(token_id)
        return said


class TokenTexts:
    """The texts of single tokens, cached as long as their model is loaded."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer
        self._special = special_ids(tokenizer)
        self._anchor = list(tokenizer.encode("a", add_special_tokens=False))
        self._anchor_text = self.decode(self._anchor, skip_special=False)
        self._joins = joins_texts(tokenizer) and bool(self._anchor_text) and self._special.isdisjoint(self._anchor)
        self.after_any: Callable[[int], str | None] = _Cached(self._after_any).__getitem__
        self.name: Callable[[int], str] = _Cached(self._name).__getitem__
        self.alone = lru_cache(maxsize=CACHED_BEGINNINGS)(self._alone)

    def decode(self, token_ids: list[int], skip_special: bool = True) -> str:
        """Return the text of a sequence of tokens."""
        text = self._tokenizer.decode(token_ids, skip_special_tokens=skip_special, clean_up_tokenization_spaces=False)
        return str(text)

    def _alone(self, token_ids: tuple[int, ...]) -> str:
        """Return the text of tokens at the start of an answer. Cached, because many answers begin alike."""
        return self.decode(list(token_ids))

    def token(self, token_id: int) -> str | None:
        """Return a token as the vocabulary writes it; None for one without text: a special token, or an unknown id."""
        token = self._tokenizer.convert_ids_to_tokens(token_id)  # models round their vocabularies up
        return None if token_id in self._special or token is None else str(token)

    def anchored(self, token_id: int, text: str) -> tuple[list[int], str]:
        """Return the ids of an anchor and this token, and the text of both; `text` is what it adds, see `after_any`."""
        return [*self._anchor, token_id], self._anchor_text + text

    def learn(self, vocabulary: int) -> Iterator[None]:
        """Cache the texts of a vocabulary, one token at a time; of a large one, those that its merges made first."""
        for token_id in range(min(vocabulary, LEARNT_TEXTS)):
            self.name(token_id)
            yield

    def names(self, token_ids: Sequence[int]) -> list[str]:
        """Return tokens as panels show them: with their leading space, special tokens by name, lone bytes as ‹E4›."""
        return list(map(self.name, token_ids))

    def _after_any(self, token_id: int) -> str | None:
        """Return the text that a token adds to a text; None where that depends on its neighbours, see `joins_texts`."""
        token = self.token(token_id)
        if token is None:
            return ""
        if not self._joins or is_byte_fallback(token):
            return None
        text = self.decode([*self._anchor, token_id])
        return None if UNDECODABLE in text else text[len(self._anchor_text) :]

    def _name(self, token_id: int) -> str:
        text = self.after_any(token_id)
        if text:
            return text
        token = self._tokenizer.convert_ids_to_tokens(token_id)
        if not isinstance(token, str):
            return f"‹{token_id}›"
        if token_id in self._special:
            return token
        if is_byte_fallback(token):
            value = int(token[3:5], 16)
            return chr(value) if value < 0x80 else f"‹{value:02X}›"
        text = self.decode([*self._anchor, token_id], skip_special=False)[len(self._anchor_text) :]
        if UNDECODABLE not in text:
            return text
        raw = bytes(BYTES[character] for character in token if character in BYTES)
        return "".join(map(_lone_byte_by_number, raw.decode("utf-8", "surrogateescape")))


def _lone_byte_by_number(character: str) -> str:
    # `surrogateescape` puts each byte that is no part of a character at U+DC00 above its value.
    value = ord(character) - 0xDC00
    return f"‹{value:02X}›" if 0x80 <= value <= 0xFF else character


def special_ids(tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """Return every token that decoding skips, also tokens that are marked special but have no role (end, unknown …)."""
    marked = (token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special)
    return frozenset([*tokenizer.all_special_ids, *marked])


def joins_texts(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Return whether a token of whole characters has the same text after any text that is not empty.

    That depends on the tokenizer's decoder: byte-level BPE joins the bytes of its tokens, as llama.cpp does, and
    SentencePiece, which replaces characters inside of tokens, strips the front of the whole text. Any other decoder
    counts as "no".
    """
    if getattr(tokenizer, "joins_texts", False):
        return True
    from transformers import PreTrainedTokenizerFast

    kind, own = type(tokenizer), PreTrainedTokenizerFast
    if not issubclass(kind, own) or kind.decode is not own.decode or kind._decode is not own._decode:
        return False
    decoder = tokenizer.backend_tokenizer.decoder
    state = json.loads(decoder.__getstate__()) if decoder is not None else {"type": None}
    parts = state.get("decoders", [state])
    kinds = [part["type"] for part in parts]
    if kinds == ["Replace", "ByteFallback", "Fuse", "Strip"]:
        return bool(parts[-1]["stop"] == 0)
    return kinds in (["ByteLevel"], ["Replace", "ByteFallback", "Fuse"])


def is_byte_fallback(token: str) -> bool:
    """Return whether this token is a single byte, which SentencePiece writes as `<0xE4>`."""
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")
