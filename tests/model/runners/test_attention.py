"""Attention over places: all ways compute the softmax over what is seen, and the fastest that does is chosen."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ladechat.model.runners import attention
from ladechat.model.runners.attention import WAYS, AttentionInputs, Bias, fastest, merged

CPU = torch.device("cpu")


def random_question(
    seed: int, heads: int, rows: int, slots: int, cached: int, spare: int, dtype: torch.dtype
) -> AttentionInputs:
    dice = torch.Generator().manual_seed(seed)

    def some(*shape: int) -> Tensor:
        return 2 * torch.randn(shape, generator=dice, dtype=dtype)

    context = cached + slots + spare
    sees = (torch.rand(rows, slots, generator=dice) < 0.5) | (
        torch.arange(rows)[:, None] % slots == torch.arange(slots)
    )
    seen = torch.cat([torch.ones(rows, cached).bool(), sees, torch.zeros(rows, spare).bool()], 1)
    keys, values = some(context, heads, 8), some(context, heads, 8)
    bias = torch.zeros(rows, context, dtype=dtype).masked_fill(~seen, -torch.inf)
    own = slice(cached, cached + slots)
    biases = Bias(torch.tensor([cached]), bias, bias[:, own])
    return AttentionInputs(some(heads, rows, 8), keys, values, keys[own], values[own], biases, 0.35)


def softmax(inputs: AttentionInputs) -> Tensor:
    """By the book, in float64, without what is not seen."""
    result = torch.zeros_like(inputs.queries, dtype=torch.float64)
    for head in range(inputs.queries.shape[0]):
        for row, bias in enumerate(inputs.bias.places):
            seen = bias == 0
            keys, values = (part[seen, head].double() for part in (inputs.keys, inputs.values))
            result[head, row] = torch.softmax(inputs.scale * keys @ inputs.queries[head, row].double(), 0) @ values
    return result


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.1)])
@given(
    st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 2), st.integers(1, 6), st.integers(1, 9), st.integers(0, 5)
)
@settings(max_examples=15, deadline=None)
def test_every_way_is_the_softmax_over_what_is_seen(
    name: str,
    dtype: torch.dtype,
    tolerance: float,
    seed: int,
    heads: int,
    groups: int,
    slots: int,
    cached: int,
    spare: int,
) -> None:
    inputs = random_question(seed, heads, groups * slots, slots, cached, spare, dtype)
    found = WAYS[name](inputs)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), softmax(inputs), atol=tolerance, rtol=tolerance)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1.0, 30.0]))
@settings(deadline=None)
def test_two_halves_are_merged_as_if_they_had_been_one(seed: int, first: int, second: int, spread: float) -> None:
    dice = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(first + second, generator=dice, dtype=torch.float64)
    values = torch.randn(first + second, 4, generator=dice, dtype=torch.float64)
    halves = [(scores[:first], values[:first]), (scores[first:], values[first:])]
    parts = [part for s, v in halves for part in (torch.softmax(s, 0) @ v, s.logsumexp(0))]
    torch.testing.assert_close(merged(*parts), torch.softmax(scores, 0) @ values)


def test_the_fastest_way_that_agrees_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([3.0, 1.0, 2.0])
    assert fastest(2, 8, 4, 32, 8, torch.float32, CPU, lambda _: next(seconds)) == "in steps"

    def refused(_: AttentionInputs) -> Tensor:
        raise RuntimeError("no kernel for this card")

    ways = {**WAYS, "in steps": lambda inputs: WAYS["in one"](inputs) + 1, "in two": refused}
    monkeypatch.setattr(attention, "WAYS", ways)
    timed = []

    def clock(act: Callable[[], object]) -> float:
        timed.append(act)
        return 1.0

    assert fastest(2, 8, 4, 32, 8, torch.float32, CPU, clock) == "in one"
    assert len(timed) == 1
