"""A real chat model (`make real-model`): every decoder writes what plain decoding writes, in as few passes as is known.

The counts of passes need the field's common questions too, which are not part of the project: a file of Spec-Bench's
form, at LADECHAT_QUESTIONS or beside the project in shared/real.
"""

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from benchmarks.equal_nodes import FreeUpTo
from ladechat import registry
from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits
from ladechat.model.kernels.build import Build
from ladechat.model.loaded import LoadedModel
from ladechat.model.trained import KINDS
from ladechat.tuning.adaptive import MAX_DRAFTS, AdaptivePolicy
from tests.checkpoints import load_on_cpu
from tests.made_up_costs import moderate, shared
from tests.made_up_maps import made_up_for
from tests.tiny import tokens_of

ROOT = Path(__file__).parent.parent
CHECKPOINT = ROOT / "build" / "real-model" / "SmolLM2-135M-Instruct"
QUESTIONS = Path(os.environ.get("LADECHAT_QUESTIONS", ROOT.parent / "shared" / "real" / "questions.jsonl"))
TRAINED = tuple(ROOT / "benchmarks" / "results" / f"{CHECKPOINT.name}.{kind}.safetensors" for kind in KINDS)
IDS = (84, 94, 104, 114, 124, 134, 144, 154, 164, 244, 324, 404, 484)
"""One question of each of the 13 categories of Spec-Bench."""
OWN = (
    "Write a Python function that reverses a string.",
    "Repeat after me: the cat sat on the mat.",
    "Why is the sky blue?",
)

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CHECKPOINT.exists(), reason="make real-model has not been run"),
    pytest.mark.xdist_group("real model"),
    pytest.mark.timeout(3600),
]


@cache
def real_model() -> LoadedModel:
    """With the kernels where this machine can build them, as the engine loads it."""
    return load_on_cpu(CHECKPOINT, kernels=Build(), maps=TRAINED)


def prompt_of(question: str) -> list[int]:
    tokenizer = real_model().tokenizer
    messages = [{"role": "user", "content": question}]
    text = str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    return list(tokenizer.encode(text, add_special_tokens=False))


def answer(decoder: Decoder, prompt: list[int], limit: int, sampler: Sampler | None = None) -> tuple[list[int], int]:
    """The text and the number of passes."""
    steps = list(decoder.run(prompt, Limits(limit, real_model().eos_ids), sampler))
    return tokens_of(steps), len(steps)


@cache
def plain(question: str, limit: int) -> list[int]:
    return answer(Decoder(real_model().runner), prompt_of(question), limit)[0]


@pytest.mark.parametrize("name", registry.DECODERS)
@pytest.mark.parametrize("question", OWN)
def test_every_decoder_writes_what_plain_decoding_writes(name: str, question: str) -> None:
    decoder = registry.make(name, real_model().runner, shared(moderate, trained=made_up_for(real_model().runner)))
    assert answer(decoder, prompt_of(question), 96)[0] == plain(question, 96)


@pytest.mark.parametrize("name", registry.DECODERS)
def test_every_decoder_samples_what_plain_decoding_samples(name: str) -> None:
    prompt = prompt_of(OWN[0])

    def sampler() -> Sampler:
        return Sampler(prompt, Sampling(sample=True, generator=torch.Generator().manual_seed(5)))

    expected, _ = answer(Decoder(real_model().runner), prompt, 64, sampler())
    decoder = registry.make(name, real_model().runner, shared(moderate, trained=made_up_for(real_model().runner)))
    assert answer(decoder, prompt, 64, sampler())[0] == expected


def union(*names: str, drafts: int) -> Decoder:
    """Of several drafters in one tree of so many drafts, with the maps that were trained for this model."""
    runner = real_model().runner
    parts = [registry.make(name, runner, shared(moderate, trained=real_model().maps.by_kind)) for name in names]
    for part in parts:
        part.configure({"nodes": MAX_DRAFTS})
    drafters = [drafter for part in parts for drafter in part.drafters]
    return Decoder(runner, drafters, AdaptivePolicy(FreeUpTo(drafts)))


def alone(name: str, nodes: int) -> Decoder:
    """One drafter with so many nodes."""
    decoder = registry.make(name, real_model().runner, shared(moderate, trained=real_model().maps.by_kind))
    decoder.configure({"nodes": nodes})
    return decoder


MAKERS: dict[str, tuple[Callable[[], Decoder], float]] = {
    "lookahead 15,5,15": (lambda: registry.lookahead(real_model().runner, 15, 5, 15), 2.1),
    "suffix and recycling, 16": (lambda: union("suffix", "recycling", drafts=16), 1.9),
    "suffix and recycling, 32": (lambda: union("suffix", "recycling", drafts=32), 2.15),
    "medusa, 16": (lambda: alone("medusa", 16), 1.3),
    "hidden transfer, 16": (lambda: alone("hidden_transfer", 16), 1.5),
    "suffix, recycling and hidden transfer, 16": (
        lambda: union("suffix", "recycling", "hidden_transfer", drafts=16),
        2.1,
    ),
}
"""Each with the tokens per step that it has at least."""


@pytest.mark.skipif(not QUESTIONS.exists(), reason="the common questions are not here")
@pytest.mark.parametrize("name", MAKERS)
def test_tokens_per_step_on_the_fields_questions(name: str) -> None:
    questions = {one["id"]: one for one in map(json.loads, QUESTIONS.read_text(encoding="utf-8").splitlines())}
    make, least = MAKERS[name]
    tokens = passes = 0
    for number in IDS:
        question = questions[number]["turns"][0]
        text, count = answer(make(), prompt_of(question), 128)
        assert text == plain(question, 128)
        tokens, passes = tokens + len(text), passes + count
    assert tokens / passes >= least
