"""The argmax of logits, read at once or row by row: the same tokens, the same log-probabilities."""

import pytest
import torch

from ladechat.model.runners.logits import argmax, argmax_with_log_probabilities


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
