"""A GGUF file opened by llama.cpp: its weights as they are packed, its facts, its vocabulary."""

import ctypes
import hashlib
import re
from collections.abc import Callable
from ctypes import c_void_p
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from ladechat.model.llama_cpp.library import LOG, load_library
from ladechat.model.llama_cpp.structures import INTEGER, TEXT, Override, ProgressCallback

READ, MAPPED = 0, 1
"""The ways of loading: weights are read; or they stay in the file, and the system maps it into memory. Rearranged
weights are a copy, so the file is read for them: mapped, it would be in memory twice."""

SIZES = {" - Small": "_S", " - Medium": "_M", " - Large": "_L"}
"""The ends of the library's names of quantisations, and how people and files write them."""

MOST_OF_A_VALUE = 1 << 20
"""The most bytes of a text that is read from the metadata."""


PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
"""The end of the name of a file that is one part of a model."""


class FileRefused(Exception):
    """The library cannot open a file: the message has its reason, or is empty."""


def bytes_of(path: Path) -> int:
    """Return the size of a file; of a model in several parts, that of all of them."""
    stem = PART.sub("", path.name)
    parts = [path] if stem == path.name else path.parent.iterdir()
    return sum(part.stat().st_size for part in parts if part == path or PART.sub("", part.name) == stem)


class PackedModel:
    """A file's weights in memory, and its vocabulary.

    Args:
        path: the file; of a model in several parts, the first.
        repacked: whether weights may be rearranged for the processor. That is faster for some formats, but then the
            logits of a token depend on how many tokens are in the pass.
        gpu: whether layers are computed by a GPU, if the library knows one.
        progress: called with the fraction of the weights that is read.
        without_texts: its architecture and number of tokens, to open it without their texts, which takes half the time.

    Attributes:
        pointer: the library's.
        vocabulary: the number of tokens.
        on_gpu: whether a GPU computes.

    Raises:
        FileRefused: the library cannot open it.
        LibraryMismatch: the library is not the one that is known.
    """

    def __init__(
        self,
        path: Path,
        repacked: bool = False,
        gpu: bool = False,
        progress: Callable[[float], None] | None = None,
        without_texts: tuple[str, int] | None = None,
    ) -> None:
        self._library: Any = load_library()
        self.on_gpu = gpu and bool(self._library.llama_supports_gpu_offload())
        options = self._library.llama_model_default_params()
        options.use_extra_bufts = repacked
        options.load_mode = READ if repacked else MAPPED
        options.n_gpu_layers = -1 if self.on_gpu else 0
        if without_texts is not None:
            overrides = _no_texts(*without_texts)
            options.kv_overrides = ctypes.cast(overrides, c_void_p)

        def reached(fraction: float, _data: object) -> bool:
            if progress is not None:
                progress(fraction)
            return True

        options.progress_callback = self._callback = ProgressCallback(reached)
        LOG.clear()
        self.pointer = self._library.llama_model_load_from_file(str(path).encode(), options)
        if not self.pointer:
            raise FileRefused(LOG.reason())
        self._vocab = self._library.llama_model_get_vocab(self.pointer)
        self.vocabulary = int(self._library.llama_vocab_n_tokens(self._vocab))

    def close(self) -> None:
        """Free the weights."""
        if self.pointer:
            self._library.llama_model_free(self.pointer)
            self.pointer = None

    # --- its facts ----------------------------------------------------------------------------------------------------

    def fact(self, key: str) -> str | None:
        """Return a value of the metadata as text; None where there is none. Lists are not given."""
        text = ctypes.create_string_buffer(MOST_OF_A_VALUE)
        size = self._library.llama_model_meta_val_str(self.pointer, key.encode(), text, len(text))
        return None if size < 0 else text.value.decode(errors="replace")

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the model type."""
        return self.fact("general.architecture") or "unknown"

    @property
    def quantization(self) -> str | None:
        """How most weights are stored, as "Q4_K_M"; None for float32."""
        name = self._library.llama_ftype_name(self._library.llama_model_ftype(self.pointer)).decode()
        for long, short in SIZES.items():
            name = name.replace(long, short)
        return None if name.endswith("F32") else re.split(r" - |\s\(|,", name)[0]

    @property
    def context_length(self) -> int:
        """The number of positions that it was trained with; 0 where the file does not say."""
        return int(self._library.llama_model_n_ctx_train(self.pointer))

    @property
    def layers(self) -> int:
        """The number of its layers."""
        return int(self._library.llama_model_n_layer(self.pointer))

    @property
    def parameters(self) -> int:
        """The number of its weights."""
        return int(self._library.llama_model_n_params(self.pointer))

    @property
    def has_state(self) -> bool:
        """Whether it has a recurrent state, which no pass can take back."""
        library = self._library
        return bool(library.llama_model_is_recurrent(self.pointer) or library.llama_model_is_hybrid(self.pointer))

    @property
    def writes_text(self) -> bool:
        """Whether it continues a text token by token, as encoders and diffusion models do not."""
        library = self._library
        return bool(
            library.llama_model_has_decoder(self.pointer)
            and not library.llama_model_has_encoder(self.pointer)
            and not library.llama_model_is_diffusion(self.pointer)
        )

    @property
    def chat_template(self) -> str | None:
        """Its template for conversations, if the file has one."""
        found = self._library.llama_model_chat_template(self.pointer, None)
        return None if found is None else str(found.decode(errors="replace"))

    # --- its vocabulary -----------------------------------------------------------------------------------------------

    @cached_property
    def tokens(self) -> list[str]:
        """The tokens as the vocabulary writes them, by id."""
        texts = map(self._library.llama_vocab_get_text, repeat(self._vocab), range(self.vocabulary))
        return [(text or b"").decode(errors="replace") for text in texts]

    @cached_property
    def attributes(self) -> list[int]:
        """For each token its kind: bits of llama.h's `llama_token_attr`."""
        return list(map(self._library.llama_vocab_get_attr, repeat(self._vocab), range(self.vocabulary)))

    @cached_property
    def fingerprint(self) -> str:
        """The first 16 hex digits of a SHA-256 of its vocabulary: equal fingerprints, equal token ids."""
        about = [self.fact(f"tokenizer.ggml.{key}") for key in ("model", "pre", "add_space_prefix")]
        digest = hashlib.sha256(repr(about).encode())
        digest.update("\0".join(self.tokens).encode())
        digest.update(np.array(self.attributes, np.int32).tobytes())
        return digest.hexdigest()[:16]

    def token_with_role(self, role: str) -> int | None:
        """Return the token with the role "bos", "eos" or "pad"; None where there is none."""
        found = int(getattr(self._library, f"llama_vocab_{role}")(self._vocab))
        return found if 0 <= found < self.vocabulary else None

    @property
    def named_ends(self) -> list[int]:
        """The tokens that the file names as the end of a text, of a turn, or of a message."""
        found = [self.fact(f"tokenizer.ggml.{role}_token_id") for role in ("eos", "eot", "eom")]
        return [int(token_id) for token_id in found if token_id is not None and token_id.isdecimal()]

    def ends_an_answer(self, token_id: int) -> bool:
        """Return whether llama.cpp itself ends an answer at a token."""
        return bool(self._library.llama_vocab_is_eog(self._vocab, token_id))

    def tokenize(self, text: str, beginning: bool) -> list[int]:
        """Return the tokens of a text, in which control tokens are recognised.

        With `beginning`, the token that begins a text comes first, if the file says so.
        """
        raw = text.encode(errors="replace")
        room = len(raw) + 16
        while True:
            found = (ctypes.c_int32 * room)()
            count = self._library.llama_tokenize(self._vocab, raw, len(raw), found, room, beginning, True)
            if count >= 0:
                return found[:count]
            room = -count

    def piece(self, token_id: int) -> bytes:
        """Return the bytes that a token stands for; of a control token, its name."""
        room = 64
        while True:
            piece = ctypes.create_string_buffer(room)
            size = self._library.llama_token_to_piece(self._vocab, token_id, piece, room, 0, True)
            if size >= 0:
                return piece.raw[:size]
            room = -size


def _no_texts(architecture: str, tokens: int) -> "ctypes.Array[Override]":
    overrides = (Override * 3)()
    overrides[0] = Override(TEXT, b"tokenizer.ggml.model", Override.Value(text=b"no_vocab"))
    overrides[1] = Override(INTEGER, f"{architecture}.vocab_size".encode(), Override.Value(number=tokens))
    return overrides
