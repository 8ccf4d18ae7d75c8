"""On packed weights every token drafter writes what llama.cpp's own greedy loop writes: greedily, sampled, stopped."""

import random
from collections.abc import Generator

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from hypothesis import given, settings, strategies as st
from transformers import TemperatureLogitsWarper

from ladechat import registry
from ladechat.catalog import DECODERS
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits
from tests.made_up_costs import dear, drawn, free, moderate, shared
from tests.packed import greedy_loop, packed_runner, tiny_file
from tests.test_exactness import random_parameters
from tests.tiny import accepted, run, tokens_of

KINDS = [Kind.Q8_0, Kind.Q4_0]
NEED_HIDDEN_STATES = {"hidden_transfer", "medusa", "layer_skip"}
TOKEN_DRAFTERS = [name for name in registry.DECODERS if name not in NEED_HIDDEN_STATES]

decoders = pytest.mark.parametrize("name", TOKEN_DRAFTERS)
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def drawing(prompt: list[int], seed: int) -> Sampler:
    """A sampler at a temperature that leaves the choice open."""
    generator = torch.Generator().manual_seed(seed)
    return Sampler(prompt, Sampling([TemperatureLogitsWarper(0.8)], sample=True, generator=generator))


def prompt_for(dice: random.Random, kind: Kind) -> list[int]:
    """Half of the prompts hold parts of the text to come."""
    prompt = [dice.randrange(300) for _ in range(dice.randint(1, 20))]
    if dice.random() < 0.5:
        prompt = [*prompt, *greedy_loop(tiny_file(dice.randrange(3), kind=kind), prompt, 15), *prompt[-8:]]
    return prompt


@decoders
@kinds
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), slots=st.sampled_from([1, 3, 16]), window=st.booleans())
def test_greedy_output_is_that_of_llama_cpps_own_loop(
    name: str, kind: Kind, seed: int, slots: int, window: bool
) -> None:
    dice = random.Random(seed)
    path, prompt = tiny_file(dice.randrange(3), kind=kind), prompt_for(dice, kind)
    runner = packed_runner(path, slots=slots)
    curve = (drawn(seed), free, moderate, dear)[seed % 4]
    decoder = registry.make(name, runner, shared(curve, window=window))
    decoder.configure(random_parameters(name, dice))
    assert tokens_of(run(decoder, prompt, 30)) == greedy_loop(path, prompt, 30)


@decoders
@kinds
def test_drafts_are_accepted_where_the_text_repeats_itself(name: str, kind: Kind) -> None:
    path = tiny_file(1, kind=kind)
    prompt = [5, 8, 13, 21, *greedy_loop(path, [5, 8, 13, 21], 30), 5, 8, 13, 21]
    decoder = registry.make(name, packed_runner(path), shared(free))
    steps = run(decoder, prompt, 40)
    assert tokens_of(steps) == greedy_loop(path, prompt, 40)
    assert accepted(steps) or not DECODERS[name].tree_attention


@decoders
@pytest.mark.parametrize("seed", range(4))
def test_sampled_output_is_that_of_plain_decoding_with_the_same_seed(name: str, seed: int) -> None:
    path = tiny_file(seed % 3, kind=Kind.Q8_0)
    prompt = prompt_for(random.Random(seed), Kind.Q8_0)

    def sampled(decoder: str) -> list[int]:
        made = registry.make(decoder, packed_runner(path), shared(moderate))
        return tokens_of(list(made.run(prompt, Limits(30), drawing(prompt, seed))))

    assert sampled(name) == sampled("autoregressive")


@decoders
def test_a_stopped_run_leaves_a_cache_that_the_next_one_goes_on_from(name: str) -> None:
    path, prompt = tiny_file(2, kind=Kind.Q8_0), [5, 8, 13, 21, 5, 8, 13]
    runner = packed_runner(path)
    steps = registry.make(name, runner, shared(moderate)).run(prompt, Limits(60))
    written = [token for _ in range(6) for token in next(steps).tokens]
    assert isinstance(steps, Generator)
    steps.close()
    assert list(runner.tokens) == prompt + written[:-1]
    continued = tokens_of(run(registry.make(name, runner, shared(moderate)), prompt + written, 20))
    assert written + continued == greedy_loop(path, prompt, len(written) + 20)


@decoders
@pytest.mark.parametrize("context", [9, 40])
def test_a_run_fills_the_context_to_its_end(name: str, context: int) -> None:
    path, prompt = tiny_file(0, kind=Kind.Q8_0), [5, 8, 13, 21, 5, 8, 13]
    steps = run(registry.make(name, packed_runner(path, context), shared(free)), prompt, 1000)
    assert tokens_of(steps) == greedy_loop(path, prompt, context - len(prompt))
