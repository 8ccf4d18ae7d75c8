"""Whether logits differ by rounding only is judged by the tokens that may be chosen."""

import torch

from ladechat.model.runners.logits import deviation


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
