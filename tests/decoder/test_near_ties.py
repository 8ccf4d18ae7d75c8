"""In half precision two decoders may part, but only where the model's two best tokens nearly tie.

A near tie, as the README means it: the gap between the two largest logits is at most twice what rounding changes. That
is measured without any decoder: the largest difference between the logits that the model itself gives after that very
text, read in passes of one token and in passes of other sizes. (Measured between the two decoders, the gap would be a
near tie by arithmetic alone, however wrong a mask was.)
"""

import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.selection import Processor, Selection, Selector
from ladechat.decoder.step import Decoder, Limits
from ladechat.decoder.verify_mask import StepLayout
from ladechat.model.eager import EagerRunner
from tests.tiny import VOCABULARY, demo_model, demo_prompt, random_model, runner_for

LENGTH = 60
HALVES = [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.full)]


@dataclass
class Written:
    """Tokens, and the logits that each was chosen by."""

    tokens: list[int]
    logits: list[Tensor]


def write(decoder: Decoder, prompt: list[int], processors: tuple[Processor, ...] = ()) -> Written:
    logits: list[Tensor] = []
    selector = Selector(prompt, Selection(processors, observe=lambda _, raw: logits.append(raw[0])))
    for _ in decoder.run(prompt, Limits(LENGTH), selector):
        pass
    return Written(selector.text[len(prompt) :], logits)


def first_difference(one: Written, other: Written) -> int | None:
    pairs = enumerate(zip(one.tokens, other.tokens, strict=True))
    return next((index for index, (mine, theirs) in pairs if mine != theirs), None)


@torch.inference_mode()
def after(model: PreTrainedModel, text: list[int], piece: int) -> Tensor:
    """The logits after a text that the model reads, with its own cache, `piece` tokens a pass."""
    first = len(text) % piece or min(piece, len(text))
    cache = DynamicCache(config=model.config)
    logits = torch.empty(0)
    for start, end in pairwise([0, *range(first, len(text) + 1, piece)]):
        logits = model(torch.tensor([text[start:end]]), past_key_values=cache, use_cache=True).logits[0, -1].float()
    return logits


def is_near_tie(model: PreTrainedModel, text: list[int]) -> bool:
    """Whether rounding alone may change which token the model finds the likeliest after a text."""
    plain = after(model, text, 1)
    best, second = plain.topk(2).values
    largest_change = max((after(model, text, piece) - plain).abs().max() for piece in (2, 3, 5, 8, 13, 21, len(text)))
    return bool(best - second <= 2 * largest_change)


def in_half(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    copy: PreTrainedModel = type(model)(model.config).eval()
    copy.load_state_dict(model.state_dict())
    copy.to(dtype)  # type: ignore[arg-type]  # its decorator hides that it is bound
    return copy


def check(model: PreTrainedModel, prompt: list[int], settings: LookaheadSettings) -> bool:
    """Whether the two part at all; where they do, it has to be at a near tie."""
    plain = write(AutoregressiveDecoder(runner_for(model)), prompt)
    fast = write(LookaheadDecoder(runner_for(model), settings), prompt)
    index = first_difference(plain, fast)
    assert index is None or is_near_tie(model, prompt + plain.tokens[:index])
    return index is not None


@pytest.mark.parametrize("dtype", HALVES)
def test_a_first_difference_of_a_random_model_is_a_near_tie(dtype: torch.dtype) -> None:
    parted = 0
    for seed in range(4):
        dice = random.Random(seed)
        model = in_half(random_model(seed), dtype)
        for _ in range(4):
            prompt = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 30))]
            settings = LookaheadSettings(dice.randint(1, 12), dice.randint(2, 6), dice.randint(0, 8))
            parted += check(model, prompt, settings)
    assert parted or dtype is torch.float16  # which rounds so finely that a machine may have no case at all


@pytest.mark.parametrize("dtype", HALVES)
def test_a_first_difference_of_the_bundled_model_is_a_near_tie(dtype: torch.dtype) -> None:
    model = in_half(demo_model(), dtype)
    for question in ["What is the n-gram pool?", "Count from 3 to 19.", "Tell me a story about a fox called Milo."]:
        check(model, demo_prompt(question), LookaheadSettings(7, 5, 7))


def test_a_difference_of_another_kind_is_none() -> None:
    """A wrong token, where the logits hardly differ, is found out."""
    model = random_model(2)
    prompt = [5, 8, 13, 21]
    plain = write(AutoregressiveDecoder(runner_for(model)), prompt)
    gaps = [float(-logits.topk(2).values.diff()) for logits in plain.logits]
    clear = max(range(LENGTH), key=lambda index: gaps[index])

    def spoil(ids: Tensor, scores: Tensor) -> Tensor:
        wrong = ids.shape[1] == len(prompt) + clear
        return scores.scatter(1, torch.tensor([[plain.tokens[clear]]]), -torch.inf) if wrong else scores

    spoilt = write(LookaheadDecoder(runner_for(model)), prompt, (spoil,))
    index = first_difference(plain, spoilt)
    assert index == clear and not is_near_tie(model, prompt + plain.tokens[:index])


def test_a_mask_that_lets_guesses_see_each_other_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_half(random_model(1), torch.bfloat16)
    masked = EagerRunner._attention_mask

    def wrong(runner: EagerRunner, layout: StepLayout) -> Any:
        behind = layout.positions[:, None] >= layout.positions[None, :]
        return masked(runner, replace(layout, mask=layout.mask | behind if layout.node_slots else layout.mask))

    check(model, [5, 8, 13, 21], LookaheadSettings(5, 4, 5))
    monkeypatch.setattr(EagerRunner, "_attention_mask", wrong)
    with pytest.raises(AssertionError):
        check(model, [5, 8, 13, 21], LookaheadSettings(5, 4, 5))
