"""Tiny seeded random models, in float32 unless asked otherwise: big enough to be wrong, small enough for a laptop."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.step import Limits, Step
from ladechat.model.runners.layer_loop import LayerLoop
from ladechat.model.runners.tree import TreeRunner

DEMO = Path(__file__).parent.parent / "ladechat" / "demo"
VOCABULARY = 97

SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def random_model(seed: int = 0, model_type: str = "llama", **changes: Any) -> PreTrainedModel:
    """A random decoder-only model whose greedy text does not settle into a loop at once.

    Tests share its weights, but not its settings: `generate` changes those of an assistant, for one.
    """
    model, settings = _random_model(seed, model_type, **changes)
    for name, values in settings.items():
        vars(getattr(model, name)).clear()
        vars(getattr(model, name)).update(deepcopy(values))
    return model


def new_model(seed: int = 0, model_type: str = "llama", **changes: Any) -> PreTrainedModel:
    """The same, of the caller's own: to be changed."""
    return _random_model.__wrapped__(seed, model_type, **changes)[0]


@torch.no_grad()
def enlarged(model: PreTrainedModel) -> PreTrainedModel:
    """The same with weights so large that its text does not settle into a loop at once."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(4.0)
    model.eval()
    return model


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # whoever asks first: others may want gradients of it
@torch.random.fork_rng(devices=[])  # what a test draws next does not hang on who asked first
def _random_model(seed: int, model_type: str, **changes: Any) -> tuple[PreTrainedModel, dict[str, Any]]:
    torch.manual_seed(seed)
    config = AutoConfig.for_model(model_type, **{**SHAPE, **changes})
    model = enlarged(AutoModelForCausalLM.from_config(config, dtype=torch.float32))
    return model, {name: deepcopy(vars(getattr(model, name))) for name in ("config", "generation_config")}


@lru_cache(maxsize=1)
@torch.inference_mode(False)
def demo_model() -> PreTrainedModel:
    """The bundled model, computed in float32."""
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    return model


@lru_cache(maxsize=1)
@torch.inference_mode(False)
@torch.random.fork_rng(devices=[])
def small_demo() -> Path:
    """A checkpoint that is the bundled one in everything but its weights: few, random, and nobody trained them.

    A pass takes a seventh of the time. Answers to most questions repeat themselves, so that drafts are accepted; those
    to `ENDS` come to an end by themselves.
    """
    folder = Path(tempfile.mkdtemp(prefix="small-demo-", dir=os.environ["XDG_CACHE_HOME"]))
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        shutil.copy(DEMO / name, folder)
    shape = {name: SHAPE[name] for name in SHAPE if name.startswith(("hidden", "inter", "num", "head", "tie"))}
    config = AutoConfig.from_pretrained(DEMO, **shape)
    torch.manual_seed(41)
    model = enlarged(AutoModelForCausalLM.from_config(config, dtype=torch.float32))
    with torch.no_grad():
        model.get_parameter("lm_head.weight")[config.eos_token_id].mul_(2.2)
    model.save_pretrained(folder)
    return folder


@lru_cache
def demo_prompt(question: str) -> list[int]:
    """A first question to the bundled model, as its chat template lays it out."""
    messages = [{"role": "user", "content": question}]
    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids: list[int] = tokenizer(text, add_special_tokens=False).input_ids
    return ids


def generated(model: Any, prompt: Sequence[int], limit: int) -> list[int]:
    """What transformers' own greedy `generate` writes."""
    output = model.generate(torch.tensor([prompt]), max_new_tokens=limit, do_sample=False, eos_token_id=None)
    tokens: list[int] = output[0, len(prompt) :].tolist()
    return tokens


def runner_for(model: PreTrainedModel, context_length: int = 512, chunk: int = 512) -> TreeRunner:
    """A fresh runner, its cache empty."""
    return TreeRunner(model, context_length, chunk)


def layered_runner_for(model: PreTrainedModel, context_length: int = 512, chunk: int = 512) -> TreeRunner:
    """The same, which gives hidden states too, as one that was checked at load."""
    runner = runner_for(model, context_length, chunk)
    runner.loop, runner.capabilities = LayerLoop(model, runner.windows), Capabilities(logits_only=None)
    return runner


def tokens_of(steps: Sequence[Step]) -> list[int]:
    """The text that steps add up to."""
    return [token for step in steps for token in step.tokens]


def accepted(steps: Sequence[Step]) -> int:
    """How many drafted tokens were accepted."""
    return sum(origin != "model" for step in steps for origin in step.origins)


def run(decoder: Decoder, prompt: Sequence[int], limit: int = 40, eos: Sequence[int] = ()) -> list[Step]:
    """All steps of one run."""
    return list(decoder.run(prompt, Limits(limit, frozenset(eos))))


def plain(model: PreTrainedModel, prompt: Sequence[int], limit: int = 40, eos: Sequence[int] = ()) -> list[int]:
    """What plain decoding writes. Many tests ask for the same: it is decoded once."""
    return list(_plain(model, tuple(prompt), limit, tuple(eos)))


@lru_cache(maxsize=512)
def _plain(model: PreTrainedModel, prompt: tuple[int, ...], limit: int, eos: tuple[int, ...]) -> list[int]:
    return tokens_of(run(Decoder(runner_for(model)), prompt, limit, eos))
