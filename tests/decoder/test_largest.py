"""The largest logits of each row, by torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from ladechat.decoder.largest import largest


@pytest.mark.parametrize("vocabulary", [1, 5, 63, 64, 65, 97, 512, 576, 640, 1000, 4096, 32_000, 49_152])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_the_largest_logits_are_those_of_topk(rows: int, vocabulary: int) -> None:
    for count in sorted({1, min(3, vocabulary), min(8, vocabulary)}):
        logits = torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(rows * vocabulary + count))
        found = largest(logits, count)
        assert found.shape == (rows, count)
        assert np.array_equal(found, logits.topk(count).indices.numpy())


@given(st.integers(0, 1 << 30), st.integers(1, 8), st.sampled_from([torch.float32, torch.bfloat16]))
@settings(max_examples=60)
def test_among_equal_logits_any_may_come_but_each_once(seed: int, count: int, dtype: torch.dtype) -> None:
    dice = torch.Generator().manual_seed(seed)
    logits = torch.randint(0, 4, (3, 64 * 12), generator=dice).to(dtype)
    logits[0, 5:] = float("-inf")
    found = largest(logits, count)
    values = logits.gather(1, torch.from_numpy(found.copy()))
    assert torch.equal(values, logits.topk(count).values)
    assert all(len(set(row)) == count for row in found.tolist())


def test_logits_may_be_a_view() -> None:
    logits = torch.randn(2, 2048)[:, :1024]
    assert np.array_equal(largest(logits, 8), logits.topk(8).indices.numpy())
