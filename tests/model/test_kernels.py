"""The kernels of compiled passes: what they compute is what torch computes, at every shape; and what they refuse."""

import math
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers.pytorch_utils import Conv1D

from ladechat.model import kernels
from ladechat.model.kernels import COLUMNS, Likeliest, PackedLinear, pack, with_kernels
from tests.tiny import random_model

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 4},
    "gemma3": {"model_type": "gemma3_text", "sliding_window": 6, "num_hidden_layers": 6},
    "gpt2": {"model_type": "gpt2", "n_head": 4, "n_layer": 2},
    "stablelm": {"model_type": "stablelm"},  # takes no other attention than those that it knows
}


# What registers are wide decides how the kernels are written: 16, 8 or 4 numbers.
PROCESSORS = ("native", "haswell", "x86-64") if platform.machine() == "x86_64" else ("native",)


@pytest.fixture(scope="module", params=PROCESSORS, autouse=True)
def _library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    library = tmp_path_factory.mktemp("kernels") / f"{request.param}.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CXX", raising=False)
        kernels.build(library, threads=1, processor=request.param)
        patch.setattr(kernels, "_library", None)
        kernels.load(library)
        yield


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def large_for(kept_in: torch.dtype, weight: torch.Tensor) -> torch.Tensor:
    """Weights that this type holds exactly; for bfloat16, those that float16 does not."""
    return (weight * (2.0**20 if kept_in == torch.bfloat16 else 1.0)).to(kept_in).float()


@given(
    seed=st.integers(0, 2**31),
    rows=st.lists(st.integers(1, 11), min_size=1, max_size=2),
    inner=st.integers(1, 70),
    columns=st.integers(1, 300),
    kept_in=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
def test_a_packed_linear_layer_is_the_product_with_its_weights(
    seed: int, rows: list[int], inner: int, columns: int, kept_in: torch.dtype
) -> None:
    weight = large_for(kept_in, drawn(seed, columns, inner))
    x = drawn(seed + 1, *rows, inner)
    packed = pack(weight)
    assert packed.dtype in (kept_in, torch.float16)  # a single number may happen to fit into fewer bits
    y = torch.ops.ladechat.packed_linear(x, packed, columns)
    torch.testing.assert_close(y, x @ weight.T, atol=1e-4 * float(weight.abs().max()), rtol=1e-4)


@given(seed=st.integers(0, 2**31), rows=st.integers(2, 20), columns=st.integers(1, 300))
def test_a_row_comes_out_the_same_whatever_stands_beside_it(seed: int, rows: int, columns: int) -> None:
    packed, x = pack(drawn(seed, columns, 33).half().float()), drawn(seed + 1, rows, 33)
    together = torch.ops.ladechat.packed_linear(x, packed, columns)
    alone = [torch.ops.ladechat.packed_linear(row[None], packed, columns) for row in x]
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize("kept_in", [torch.float16, torch.bfloat16])
def test_weights_are_kept_in_16_bits_where_that_is_exact_and_only_there(kept_in: torch.dtype) -> None:
    weight = large_for(kept_in, drawn(1, 40, 7))
    packed = pack(weight)
    assert packed.dtype == kept_in and packed.shape == (2, 7, COLUMNS)
    assert torch.equal(packed.float().transpose(1, 2).reshape(-1, 7)[:40], weight)
    weight[3, 5] *= 1 + 1e-6
    assert pack(weight).dtype == torch.float32


def test_numbers_that_16_bits_hold_at_their_edges_come_out_as_they_are() -> None:
    edges = torch.tensor([65504.0, -65504.0, 2**-14, 2**-24, -(2**-24), 0.0, -0.0, 1.0])
    weight = edges.repeat(4, 1)
    assert pack(weight).dtype == torch.float16
    y = torch.ops.ladechat.packed_linear(torch.eye(8), pack(weight), 4)
    assert torch.equal(y, weight.T)


@given(seed=st.integers(0, 2**31), rows=st.integers(1, 9), vocabulary=st.integers(1, 200), spread=st.floats(0, 60))
def test_the_likeliest_tokens_and_their_log_probabilities_are_those_of_torch(
    seed: int, rows: int, vocabulary: int, spread: float
) -> None:
    logits = spread * drawn(seed, rows, vocabulary)
    logits[:, ::3] = logits.amax(-1, keepdim=True)  # the first of several is taken
    logits[:, 1::7] = -torch.inf  # ruled out
    read = Likeliest()
    read(logits[:1])  # the next call has more rows, or as many
    tokens, logprobs = read(logits)
    assert tokens == logits.argmax(-1).tolist()
    expected = logits.double().log_softmax(-1).amax(-1)
    torch.testing.assert_close(torch.tensor(logprobs, dtype=torch.float64), expected, atol=1e-5, rtol=1e-5)


def test_the_likeliest_tokens_of_more_rows_than_before_find_room() -> None:
    read = Likeliest()
    for rows in (3, 200, 1, 5000):
        logits = drawn(rows, rows, 17)
        tokens, logprobs = read(logits)
        assert tokens == logits.argmax(-1).tolist()
        assert len(logprobs) == rows


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("place", [0, 7, 39])
def test_the_log_probability_of_logits_that_are_no_numbers_is_none(bad: float, place: int) -> None:
    logits = torch.zeros(2, 40)
    logits[1, place] = bad
    tokens, logprobs = Likeliest()(logits)
    assert math.isfinite(logprobs[0]) and math.isnan(logprobs[1])
    assert all(0 <= token < 40 for token in Likeliest()(torch.full((1, 40), torch.nan))[0] + tokens)


@given(
    seed=st.integers(0, 2**31),
    groups=st.integers(1, 3),
    shared_by=st.integers(1, 3),
    slots=st.integers(1, 11),
    cached=st.integers(0, 70),
    dims=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    scale=st.floats(0.05, 3.0),
)
def test_attention_is_that_of_torch(
    seed: int, groups: int, shared_by: int, slots: int, cached: int, dims: tuple[int, int], scale: float
) -> None:
    key_dim, value_dim = dims
    tokens = cached + slots
    query = drawn(seed, 1, groups * shared_by, slots, key_dim)
    keys = drawn(seed + 1, tokens, groups, key_dim).transpose(0, 1)[None]  # as they lie in the cache
    values = drawn(seed + 2, tokens, groups, value_dim).transpose(0, 1)[None]
    mask = drawn(seed + 3, 1, 1, slots, tokens) > 0
    mask[..., cached:] |= torch.eye(slots, dtype=torch.bool)  # every slot sees itself at least
    ours = torch.ops.ladechat.slot_attention(query, keys, values, mask, scale)
    every_key, every_value = (part.repeat_interleave(shared_by, dim=1) for part in (keys, values))
    theirs = scaled_dot_product_attention(query, every_key, every_value, attn_mask=mask, scale=scale).transpose(1, 2)
    assert ours.is_contiguous()
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_what_a_slot_does_not_see_changes_nothing_even_if_it_is_no_number() -> None:
    keys, values = drawn(1, 9, 2, 16), drawn(2, 9, 2, 16)
    query, mask = drawn(3, 1, 2, 1, 16), torch.ones(1, 1, 1, 9, dtype=torch.bool)
    mask[..., 4] = False
    before = torch.ops.ladechat.slot_attention(
        query, keys.transpose(0, 1)[None], values.transpose(0, 1)[None], mask, 1.0
    )
    keys[4] = torch.nan
    after = torch.ops.ladechat.slot_attention(
        query, keys.transpose(0, 1)[None], values.transpose(0, 1)[None], mask, 1.0
    )
    assert torch.equal(before, after)


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    keys = torch.tensor([0.0, 1000.0, -1000.0, 999.0]).view(1, 1, 4, 1)
    values = torch.tensor([1.0, 2.0, 4.0, 8.0]).view(1, 1, 4, 1)
    mask = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    ours = torch.ops.ladechat.slot_attention(torch.ones(1, 1, 1, 1), keys, values, mask, 1.0)
    theirs = scaled_dot_product_attention(torch.ones(1, 1, 1, 1), keys, values, attn_mask=mask, scale=1.0)
    torch.testing.assert_close(ours.flatten(), theirs.flatten())


def test_tensors_that_they_are_not_made_for_are_refused() -> None:
    packed, query = pack(drawn(1, 8, 8)), drawn(2, 1, 1, 2, 8)
    with pytest.raises(RuntimeError, match="packed_linear does not take"):
        torch.ops.ladechat.packed_linear(torch.zeros(2, 8, dtype=torch.float64), packed, 8)
    with pytest.raises(RuntimeError, match="packed_linear does not take"):
        torch.ops.ladechat.packed_linear(torch.zeros(8, 2).T, packed, 8)
    for x in (torch.zeros(2, 1, 12)[..., :8], torch.zeros(2, 7)):
        with pytest.raises(RuntimeError, match="packed_linear does not take"):
            torch.ops.ladechat.packed_linear(x, packed, 8)
    with pytest.raises(RuntimeError, match="packed_linear does not take"):
        torch.ops.ladechat.packed_linear(torch.zeros(2, 8), packed, 33)
    mask = torch.ones(1, 1, 2, 2, dtype=torch.bool)
    for wrong in (mask.float(), mask[..., :1], mask[:, :, :1], mask.expand(1, 2, 2, 2)):
        with pytest.raises(RuntimeError, match="slot_attention does not take"):
            torch.ops.ladechat.slot_attention(query, query, query, wrong, 1.0)
    with pytest.raises(RuntimeError, match="slot_attention does not take"):
        torch.ops.ladechat.slot_attention(query, query, query[:, :, :1], mask, 1.0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", [nn.Linear, Conv1D])
def test_a_packed_layer_is_the_one_that_it_was_made_of(kind: Any, bias: bool) -> None:
    layer = nn.Linear(20, 45, bias=bias) if kind is nn.Linear else Conv1D(45, 20)
    x = drawn(1, 1, 6, 20)
    torch.testing.assert_close(PackedLinear(layer)(x), layer(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_model_with_kernels_computes_what_it_computes_without_and_stays_as_it_is(architecture: str) -> None:
    model = random_model(3, **ARCHITECTURES[architecture])
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ours = with_kernels(model)
    tokens = torch.tensor([[5, 9, 3, 17, 4, 8, 11, 30]])
    mask = torch.ones(1, 1, 8, 8, dtype=torch.bool).tril()
    kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    masks = mask if len(kinds) == 1 else dict.fromkeys(kinds, mask)
    with torch.inference_mode():
        theirs = model(input_ids=tokens, attention_mask=masks, use_cache=False).logits
        torch.testing.assert_close(
            ours(input_ids=tokens, attention_mask=masks, use_cache=False).logits, theirs, atol=1e-4, rtol=1e-4
        )
    assert any(isinstance(module, PackedLinear) for module in ours.modules())
    assert not any(isinstance(module, PackedLinear) for module in model.modules())
    assert model.config._attn_implementation == "sdpa"
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    embedding = ours.get_input_embeddings()
    assert embedding.weight is model.get_input_embeddings().weight  # shared


def test_models_in_other_types_are_left_alone() -> None:
    model = random_model(1).double()
    try:
        assert with_kernels(model) is model
    finally:
        model.float()


def test_a_compiler_that_fails_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", sys.executable)
    with pytest.raises(RuntimeError, match="The kernels cannot be compiled"):
        kernels.build(tmp_path / "kernels.so", threads=1)
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    killed.chmod(0o755)
    monkeypatch.setenv("CXX", str(killed))
    with pytest.raises(OSError, match="ended by signal 9"):
        kernels.build(tmp_path / "kernels.so", threads=1)


def test_shared_by_several_threads_a_product_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    packed, x, found = pack(drawn(1, 700, 256)), drawn(2, 9, 256), []
    for threads in (1, 2):
        kernels.build(tmp_path / f"{threads}.so", threads)
        monkeypatch.setattr(kernels, "_library", None)
        kernels.load(tmp_path / f"{threads}.so")
        found.append(torch.ops.ladechat.packed_linear(x, packed, 700))
    assert torch.equal(*found)
