"""In half precision two decoders may part, but only where the model's two best tokens nearly tie.

A near tie, as the README means it: the gap between the two largest logits is at most twice what rounding changes. That
is measured without any decoder: the largest difference between the logits that the model itself gives after that very
text, read in passes of one token and in passes of other sizes. (Measured between the two decoders, the gap would be a
near tie by arithmetic alone, however wrong a mask was.)
"""

import random
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from ladechat import registry
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Processor, Sampler, Sampling
from ladechat.decoder.step import Limits
from ladechat.decoder.verify_mask import SlotTree
from tests.made_up_costs import free, shared
from tests.tiny import VOCABULARY, demo_model, demo_prompt, random_model, runner_for

LENGTH = 60
HALVES = [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.full)]
DRAFTING = ["lookahead", "auto", pytest.param("auto with its window", marks=pytest.mark.full), "recycling", "suffix"]
DRAFTING += [pytest.param(name, marks=pytest.mark.full) for name in ("jacobi", "prompt_lookup")]


def decoder_for(name: str, runner: Runner) -> Decoder:
    if name == "lookahead":
        return registry.lookahead(runner, window=5, ngram=4, guesses=5)
    return registry.make(name.split()[0], runner, shared(free, window="window" in name))


@dataclass
class Written:
    """Tokens, and the logits that each was chosen by."""

    tokens: list[int]
    logits: list[Tensor]


def write(decoder: Decoder, prompt: list[int], processors: tuple[Processor, ...] = ()) -> Written:
    logits: list[Tensor] = []
    sampler = Sampler(prompt, Sampling(processors, observe=lambda _, raw: logits.append(raw[0])))
    for _ in decoder.run(prompt, Limits(LENGTH), sampler):
        pass
    return Written(sampler.text[len(prompt) :], logits)


def first_difference(one: Written, other: Written) -> int | None:
    pairs = enumerate(zip(one.tokens, other.tokens, strict=True))
    return next((index for index, (mine, theirs) in pairs if mine != theirs), None)


@torch.inference_mode()
def after(model: PreTrainedModel, text: tuple[int, ...], piece: int) -> Tensor:
    """The logits after a text that the model reads, with its own cache, `piece` tokens a pass."""
    first = len(text) % piece or min(piece, len(text))
    cache = DynamicCache(config=model.config)
    logits = torch.empty(0)
    for start, end in pairwise([0, *range(first, len(text) + 1, piece)]):
        logits = model(torch.tensor([text[start:end]]), past_key_values=cache, use_cache=True).logits[0, -1].float()
    return logits


@cache
def is_near_tie(model: PreTrainedModel, text: tuple[int, ...]) -> bool:
    """Whether rounding alone may change which token the model finds the likeliest after a text.

    Decoders often part from plain decoding at the same place.
    """
    plain = after(model, text, 1)
    best, second = plain.topk(2).values
    largest_change = max((after(model, text, piece) - plain).abs().max() for piece in (2, 3, 5, 8, 13, 21, len(text)))
    return bool(best - second <= 2 * largest_change)


@cache
def in_half(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    copy: PreTrainedModel = type(model)(model.config).eval()
    copy.load_state_dict(model.state_dict())
    copy.to(dtype)  # type: ignore[arg-type]  # its decorator hides that it is bound
    return copy


@cache
def plainly(model: PreTrainedModel, prompt: tuple[int, ...]) -> Written:
    return write(Decoder(runner_for(model)), list(prompt))


def drawn_prompts(seed: int) -> list[list[int]]:
    dice = random.Random(seed)
    return [[dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 30))] for _ in range(2)]


def check(model: PreTrainedModel, prompt: list[int], name: str) -> bool:
    """Whether the two part at all; where they do, it has to be at a near tie."""
    plain = plainly(model, tuple(prompt))
    fast = write(decoder_for(name, runner_for(model)), prompt)
    index = first_difference(plain, fast)
    assert index is None or is_near_tie(model, (*prompt, *plain.tokens[:index]))
    return index is not None


def test_a_first_difference_is_seen_at_all_in_half_precision() -> None:
    """Or the tests below would say nothing."""
    models = ((in_half(random_model(seed), torch.bfloat16), seed) for seed in range(1, 6))
    assert any(check(model, prompt, "lookahead") for model, seed in models for prompt in drawn_prompts(seed))


@pytest.mark.parametrize("name", DRAFTING)
@pytest.mark.parametrize("dtype", HALVES)
def test_a_first_difference_of_a_random_model_is_a_near_tie(name: str, dtype: torch.dtype) -> None:
    for seed in range(3):
        for prompt in drawn_prompts(seed):
            check(in_half(random_model(seed), dtype), prompt, name)


@pytest.mark.parametrize("name", DRAFTING)
@pytest.mark.parametrize("dtype", HALVES)
def test_a_first_difference_of_the_bundled_model_is_a_near_tie(name: str, dtype: torch.dtype) -> None:
    model = in_half(demo_model(), dtype)
    for question in ["What is the n-gram pool?", "Count from 3 to 19."]:
        check(model, demo_prompt(question), name)


def test_a_difference_of_another_kind_is_none() -> None:
    """A wrong token, where the logits hardly differ, is found out."""
    model = random_model(2)
    prompt = [5, 8, 13, 21]
    plain = write(Decoder(runner_for(model)), prompt)
    gaps = [float(-logits.topk(2).values.diff()) for logits in plain.logits]
    clear = max(range(LENGTH), key=lambda index: gaps[index])

    def spoil(ids: Tensor, scores: Tensor) -> Tensor:
        wrong = ids.shape[1] == len(prompt) + clear
        return scores.scatter(1, torch.tensor([[plain.tokens[clear]]]), -torch.inf) if wrong else scores

    spoilt = write(decoder_for("lookahead", runner_for(model)), prompt, (spoil,))
    index = first_difference(plain, spoilt)
    assert index == clear and not is_near_tie(model, (*prompt, *plain.tokens[:index]))


def test_a_mask_that_lets_guesses_see_each_other_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_half(random_model(1), torch.bfloat16)
    check(model, [5, 8, 13, 21], "lookahead")
    behind = property(lambda tree: tree.positions[:, None] >= tree.positions[None, :])
    monkeypatch.setattr(SlotTree, "mask", behind)
    with pytest.raises(AssertionError):
        check(model, [5, 8, 13, 21], "lookahead")
