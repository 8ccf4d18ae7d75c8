"""Logits: their argmax, read at once or row by row, and whether two differ by rounding only."""

import pytest
import torch

from ladechat.model.runners.logits import argmax, argmax_with_log_probabilities, deviation


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_ways_give_the_same_tokens(dtype: torch.dtype) -> None:
    logits = (5 * torch.randn(40, 3000, generator=torch.Generator().manual_seed(1))).to(dtype)
    tokens, logprobs = argmax_with_log_probabilities(logits)
    assert tokens == logits.argmax(-1).tolist() == argmax(logits)[0]
    assert logprobs == pytest.approx(logits.float().log_softmax(-1).amax(-1).tolist(), abs=1e-5)


def test_a_token_id_of_a_large_vocabulary_is_read_exactly() -> None:
    logits = torch.zeros(1, 262_145)
    logits[0, -1] = 1.0
    assert argmax_with_log_probabilities(logits)[0] == [262_144]


def test_the_likeliest_tokens_decide() -> None:
    expected = torch.randn(50_000, generator=torch.Generator().manual_seed(0))
    first, second = expected.topk(2).indices.tolist()
    swapped = expected.clone()
    swapped[[first, second]] = expected[[second, first]] + torch.tensor([0.0, 1.0])
    assert deviation(expected, expected) == 0.0
    assert deviation(expected + 1e-6, expected) < 1e-4
    assert deviation(swapped, expected) > 0.01
    assert not deviation(torch.full_like(expected, torch.nan), expected) <= 1.0


def test_tokens_that_are_ruled_out_neither_hide_nor_make_a_difference() -> None:
    expected = torch.randn(97, generator=torch.Generator().manual_seed(0))
    off = expected + 0.1 * torch.randn(97, generator=torch.Generator().manual_seed(1))
    for number in (-torch.inf, -1e4, -100.0):
        out = torch.arange(97) % 10 > 0
        one, other = (logits.masked_fill(out, number) for logits in (off, expected))
        assert 0.02 < deviation(one, other) < 0.5
        assert deviation(other.masked_fill(out, number - 50), other) == 0.0
    lifted = expected.masked_fill(torch.arange(97) == 5, -torch.inf)
    assert deviation(lifted.masked_fill(torch.arange(97) == 5, 9.0), lifted) > 1
