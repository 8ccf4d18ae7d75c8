"""Tiny GGUF files of seeded random models, and what llama.cpp makes of them."""

import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Kind
from transformers import PreTrainedModel

from ladechat.model.kernels.build import Build
from ladechat.model.llama_cpp.context import Context
from ladechat.model.llama_cpp.model import PackedModel
from ladechat.model.runners.packed import PackedRunner
from tests.engine.tokenizers import byte_level
from tests.gguf_files import write_gguf
from tests.tiny import random_model

SLOTS = 16


@lru_cache(maxsize=16)
def tiny_model(seed: int = 0, model_type: str = "llama", wide: bool = False) -> PreTrainedModel:
    """A random model with a vocabulary of bytes; a wide one has rows that the blocks of packed weights divide."""
    shape = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16} if wide else {}
    return random_model(seed, model_type, vocab_size=len(byte_level()), **shape)


@lru_cache(maxsize=16)
def tiny_file(seed: int = 0, model_type: str = "llama", kind: Kind = Kind.F32) -> Path:
    """The same as a file; wide unless its weights are plain numbers."""
    folder = Path(tempfile.mkdtemp(prefix="packed-", dir=os.environ["XDG_CACHE_HOME"]))
    model = tiny_model(seed, model_type, wide=kind != Kind.F32)
    return write_gguf(folder / "tiny.gguf", model, byte_level(), kind)


@lru_cache(maxsize=16)
def opened(path: Path) -> PackedModel:
    """The file, opened once."""
    return PackedModel(path)


def packed_runner(
    path: Path, context_length: int = 512, slots: int = SLOTS, kernels: Build | None = None
) -> PackedRunner:
    """A fresh runner on one thread, its cache empty."""
    return PackedRunner(opened(path), context_length, threads=1, slots=slots, kernels=kernels)


def greedy_loop(path: Path, prompt: Sequence[int], limit: int) -> list[int]:
    """What llama.cpp's own greedy loop writes: one token a call, and the largest logit."""
    context = Context(opened(path), 512, SLOTS, threads=1)
    text = list(prompt)
    for place, token in enumerate(text):
        logits = context.decode(np.array([token], np.int32), np.array([place], np.int32))
        if place == len(text) - 1 and len(text) < len(prompt) + limit:
            text.append(int(logits[0].argmax()))
    return text[len(prompt) :]
