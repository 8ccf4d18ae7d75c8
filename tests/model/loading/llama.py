"""The model that most of these tests load, and how they load it."""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ladechat.model.checkpoint.files import LoadError, LoadErrorCode
from ladechat.model.load import load
from ladechat.model.loaded import LoadedModel
from tests.engine.tokenizers import sentencepiece
from tests.model.refusals import assert_refused
from tests.tiny import SHAPE

LAYERS: int = SHAPE["num_hidden_layers"]


@cache
@torch.random.fork_rng(devices=[])
def tiny_llama() -> PreTrainedModel:
    """A random Llama with the vocabulary of the SentencePiece-style tokenizer, and two ends of text."""
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", **{**SHAPE, "vocab_size": len(sentencepiece())})
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    assert model.generation_config is not None
    model.generation_config.eos_token_id = [2, 7]
    return model


def loaded(folder: Path, device: str = "cpu", dtype: str = "auto", **options: Any) -> LoadedModel:
    return load(folder, "the model", device, dtype, lambda _: None, lambda _: None, **options)


def assert_not_loaded(folder: Path, code: LoadErrorCode, says: str, **options: Any) -> LoadError:
    """It is refused with this code, in a sentence that says this. The error, whose hint may be looked at."""
    return assert_refused(lambda: loaded(folder, **options), code, says)
