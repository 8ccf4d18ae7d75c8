"""What the kernels compute is what torch computes, at every shape and on every kind of processor."""

import math
import platform
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st
from torch.nn.functional import scaled_dot_product_attention

from ladechat.model.kernels.library import MOST_SLOTS, Library
from ladechat.model.kernels.packing import COLUMNS, FLOATS, GROUPED, pack
from ladechat.model.kernels.structures import Matrix
from tests.model.compiled import compiled

# The width of registers decides how the kernels are written: 16, 8 or 4 numbers.
OTHERS = ("skylake-avx512", "haswell", "x86-64") if platform.machine() == "x86_64" else ()
PROCESSORS = ("native", *(pytest.param(one, marks=pytest.mark.full) for one in OTHERS))


@pytest.fixture(scope="module", params=PROCESSORS)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(compiled(tmp_path_factory, request.param).library(), threads=2)


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
    with_bias=st.booleans(),
)
def test_a_packed_linear_layer_is_the_product_with_its_weights(
    kernels: Library, seed: int, rows: list[int], inner: int, columns: int, kept_in: torch.dtype, with_bias: bool
) -> None:
    weight = large_for(kept_in, drawn(seed, columns, inner))
    x = drawn(seed + 1, *rows, inner)
    packed = pack(weight)
    assert FLOATS[packed.kind].itemsize <= kept_in.itemsize  # a few numbers may happen to fit into fewer bits
    bias = drawn(seed + 2, columns) if with_bias else None
    y = kernels.product(Matrix.of(packed, bias))(x)
    expected = x @ weight.T + (0 if bias is None else bias)
    torch.testing.assert_close(y, expected, atol=1e-4 * float(weight.abs().max()), rtol=1e-4)


@given(seed=st.integers(0, 2**31), rows=st.integers(2, 20), columns=st.integers(1, 300))
def test_a_row_comes_out_the_same_whatever_stands_beside_it(
    kernels: Library, seed: int, rows: int, columns: int
) -> None:
    packed, x = pack(drawn(seed, columns, 33).half().float()), drawn(seed + 1, rows, 33)
    together = kernels.product(Matrix.of(packed))(x)
    alone = [kernels.product(Matrix.of(packed))(row[None]) for row in x]
    assert torch.equal(together, torch.cat(alone))


def grouped(numbers: torch.Tensor) -> torch.Tensor:
    """Rows (T, inner) in groups, (T, groups, GROUPED), the last one padded with zeros."""
    rows, inner = numbers.shape
    return torch.nn.functional.pad(numbers, (0, -inner % GROUPED)).reshape(rows, -1, GROUPED)


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 27),
    inner=st.integers(1, 200),
    columns=st.integers(1, 100),
    quantize=st.sampled_from(["int8", "int4"]),
)
def test_integers_are_multiplied_exactly_and_rows_come_out_the_same_whatever_stands_beside_them(
    kernels: Library, seed: int, rows: int, inner: int, columns: int, quantize: str
) -> None:
    packed = kernels.rounded(drawn(seed + 1, columns, inner), quantize)
    product, weight = kernels.product(Matrix.of(packed)), packed.weight()
    whole = torch.randint(-127, 128, (rows, inner), generator=torch.Generator().manual_seed(seed)).float()
    whole[:, ::GROUPED] = 127  # so that no number has to be rounded
    torch.testing.assert_close(product(whole), whole @ weight.T, atol=1e-2, rtol=1e-4)
    x = drawn(seed, rows, inner)
    step = (grouped(x).abs().amax(-1) / 127).repeat_interleave(GROUPED, 1)[:, :inner]
    assert bool(((product(x) - x @ weight.T).abs() <= 0.51 * step @ weight.abs().T + 1e-4).all())
    assert torch.equal(product(x), torch.cat([product(row[None]) for row in x]))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_is_none_after_integers_either(kernels: Library, wrong: float) -> None:
    x = drawn(1, 2, 70)
    x[1, 3] = wrong
    y = kernels.product(Matrix.of(kernels.rounded(drawn(2, 40, 70), "int8")))(x)
    assert bool(y[0].isfinite().all()) and bool(y[1].isnan().all())


def test_numbers_too_small_for_a_scale_are_0(kernels: Library) -> None:
    product = kernels.product(Matrix.of(kernels.rounded(drawn(2, 40, 64), "int8")))
    for size in (1e-45, 1e-39, 1e-36):
        assert torch.equal(product(torch.full((1, 64), size)), torch.zeros(1, 40))


@given(seed=st.integers(0, 2**31), inner=st.integers(1, 200), columns=st.integers(1, 100))
def test_rounded_weights_are_near_the_weights(kernels: Library, seed: int, inner: int, columns: int) -> None:
    """By half a step of 8 bits at most, of which the largest weight has 127; by one and a half of 4 bits, of 8.5."""
    weight = drawn(seed, columns, inner)
    largest = grouped(weight.abs()).amax(-1)
    for quantize, steps in (("int8", 127), ("int4", 5.6)):
        packed = kernels.rounded(weight, quantize)
        allowed = (largest / steps).repeat_interleave(GROUPED, 1)[:, :inner]
        assert bool(((packed.weight() - weight).abs() <= allowed).all())
        tokens = torch.tensor([[0, columns - 1, columns // 2]])
        assert torch.equal(packed.rows(tokens), packed.weight()[tokens])


@pytest.mark.parametrize("kept_in", [torch.float16, torch.bfloat16])
def test_weights_are_kept_in_16_bits_where_that_is_exact_and_only_there(kept_in: torch.dtype) -> None:
    weight = large_for(kept_in, drawn(1, 40, 7))
    packed = pack(weight)
    assert packed.data.dtype == kept_in and packed.data.shape == (2, 7, COLUMNS)
    assert torch.equal(packed.weight(), weight)
    weight[3, 5] *= 1 + 1e-6
    assert pack(weight).kind == "float32"


def test_numbers_that_16_bits_hold_at_their_edges_come_out_as_they_are(kernels: Library) -> None:
    edges = torch.tensor([65504.0, -65504.0, 2**-14, 2**-24, -(2**-24), 0.0, -0.0, 1.0])
    weight = edges.repeat(4, 1)
    assert pack(weight).kind == "float16"
    y = kernels.product(Matrix.of(pack(weight)))(torch.eye(8))
    assert torch.equal(y, weight.T)


@given(
    seed=st.integers(0, 2**31),
    groups=st.integers(1, 3),
    shared_by=st.integers(1, 3),
    slots=st.integers(1, 11),
    cached=st.integers(0, 70),
    dims=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    scale=st.floats(0.05, 3.0),
    cap=st.sampled_from([None, 0.01, 1.0, 50.0]),
)
def test_attention_is_that_of_torch(
    kernels: Library,
    seed: int,
    groups: int,
    shared_by: int,
    slots: int,
    cached: int,
    dims: tuple[int, int],
    scale: float,
    cap: float | None,
) -> None:
    key_dim, value_dim = dims
    tokens = cached + slots
    query = drawn(seed, 1, groups * shared_by, slots, key_dim)
    keys = drawn(seed + 1, tokens, groups, key_dim).transpose(0, 1)[None]  # as they lie in the cache
    values = drawn(seed + 2, tokens, groups, value_dim).transpose(0, 1)[None]
    mask = drawn(seed + 3, 1, 1, slots, tokens) > 0
    mask[..., cached:] |= torch.eye(slots, dtype=torch.bool)  # every slot sees itself at least
    ours = kernels.attention(query, keys, values, mask, scale, cap)
    every_key, every_value = (part.repeat_interleave(shared_by, dim=1) for part in (keys, values))
    scores = query @ every_key.transpose(2, 3) * scale
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    theirs = (scores.masked_fill(~mask, -torch.inf).softmax(-1) @ every_value).transpose(1, 2)
    if cap is None:
        theirs = scaled_dot_product_attention(query, every_key, every_value, mask, scale=scale).transpose(1, 2)
    assert ours.is_contiguous()
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_what_a_slot_does_not_see_changes_nothing_even_if_it_is_no_number(kernels: Library) -> None:
    keys, values = drawn(1, 9, 2, 16), drawn(2, 9, 2, 16)
    query, mask = drawn(3, 1, 2, 1, 16), torch.ones(1, 1, 1, 9, dtype=torch.bool)
    mask[..., 4] = False
    before = kernels.attention(query, keys.transpose(0, 1)[None], values.transpose(0, 1)[None], mask, 1.0)
    keys[4] = torch.nan
    after = kernels.attention(query, keys.transpose(0, 1)[None], values.transpose(0, 1)[None], mask, 1.0)
    assert torch.equal(before, after)


def test_scores_far_apart_neither_overflow_nor_vanish(kernels: Library) -> None:
    keys = torch.tensor([0.0, 1000.0, -1000.0, 999.0]).view(1, 1, 4, 1)
    values = torch.tensor([1.0, 2.0, 4.0, 8.0]).view(1, 1, 4, 1)
    mask = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    ours = kernels.attention(torch.ones(1, 1, 1, 1), keys, values, mask, 1.0)
    theirs = scaled_dot_product_attention(torch.ones(1, 1, 1, 1), keys, values, attn_mask=mask, scale=1.0)
    torch.testing.assert_close(ours.flatten(), theirs.flatten())


def test_tensors_of_other_types_or_shapes_are_refused(kernels: Library) -> None:
    packed = pack(drawn(1, 8, 8))
    for x in (torch.zeros(2, 8, dtype=torch.float64), torch.zeros(2, 7)):
        with pytest.raises(RuntimeError, match="packed linear layer of 8 inputs does not take"):
            kernels.product(Matrix.of(packed))(x)
    for x in (torch.zeros(2, 8, dtype=torch.float64), torch.zeros(2, 7)):
        with pytest.raises(RuntimeError, match=r"norm of \(8,\) weights does not take"):
            kernels.norm(x, torch.ones(8), 1e-6)


@given(seed=st.integers(0, 2**31), rows=st.integers(1, 9), width=st.integers(1, 200), scale=st.floats(1e-3, 1e3))
def test_a_norm_is_that_of_torch(kernels: Library, seed: int, rows: int, width: int, scale: float) -> None:
    x, weight = scale * drawn(seed, 1, rows, width), drawn(seed + 1, width)
    torch.testing.assert_close(kernels.norm(x, weight, 1e-6), torch.rms_norm(x, (width,), weight, 1e-6))


@given(seed=st.integers(0, 2**31), rows=st.integers(1, 9), width=st.integers(1, 300), few=st.booleans())
def test_the_best_of_a_row_is_the_first_of_the_largest_with_its_share(
    kernels: Library, seed: int, rows: int, width: int, few: bool
) -> None:
    logits = 9 * drawn(seed, rows, width)
    logits = logits.sign() if few else logits  # many equal ones
    logits[:, 1::7] = -torch.inf
    tokens, log_probabilities = kernels.best(logits)
    assert tokens == logits.numpy().argmax(-1).tolist()
    expected = logits.double().log_softmax(-1)[range(rows), tokens].float()
    torch.testing.assert_close(torch.tensor(log_probabilities), expected, atol=1e-5, rtol=1e-5)


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 5),
    vocabulary=st.integers(1, 3000),
    most=st.integers(1, 9),
    different=st.sampled_from([3, 1 << 30]),
)
def test_the_largest_of_a_row_are_those_of_topk_each_once(
    kernels: Library, seed: int, rows: int, vocabulary: int, most: int, different: int
) -> None:
    most = min(most, vocabulary)
    logits = torch.randint(0, different, (rows, vocabulary), generator=torch.Generator().manual_seed(seed)).float()
    logits[0, 1:] = float("-inf")
    found = torch.from_numpy(kernels.largest(logits, most))
    assert torch.equal(logits.gather(1, found), logits.topk(most).values)
    assert all(len(set(row)) == most for row in found.tolist())


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
@pytest.mark.parametrize("place", [0, 20, 69])
def test_the_best_of_a_row_that_is_not_finite_has_no_share(kernels: Library, wrong: float, place: int) -> None:
    logits = drawn(1, 2, 70)
    logits[1, place] = wrong
    tokens, (usual, log_probability) = kernels.best(logits)
    assert math.isfinite(usual) and math.isnan(log_probability) and 0 <= tokens[1] < 70


def test_attention_is_taken_for_a_few_slots_of_one_sequence_in_float32(kernels: Library) -> None:
    query, mask = drawn(2, 1, 1, 2, 8), torch.ones(1, 1, 2, 2, dtype=torch.bool)
    assert kernels.takes(query, query, query, mask)
    for wrong in (None, mask.float(), mask[..., :1], mask[:, :, :1], mask.expand(1, 2, 2, 2)):
        assert not kernels.takes(query, query, query, wrong)
    assert not kernels.takes(query.double(), query, query, mask)
    assert not kernels.takes(query, query, query[:, :, :1], mask)
    assert not kernels.takes(query.expand(2, 1, 2, 8), query, query, mask)
    many = drawn(2, 1, 1, MOST_SLOTS + 1, 8)
    all_seen = torch.ones(1, 1, len(many[0, 0]), len(many[0, 0]), dtype=torch.bool)
    assert not kernels.takes(many, many, many, all_seen)


@pytest.mark.parametrize("rows", [1, 2, 9, 97, 300])
def test_a_product_is_the_same_on_any_number_of_threads(build_path: Path, rows: int) -> None:
    packed, x = pack(drawn(1, 700, 256)), drawn(2, rows, 256)
    one, *others = (Library(build_path, threads).product(Matrix.of(packed))(x) for threads in (1, 2, 5))
    assert all(torch.equal(one, other) for other in others)


def test_calls_from_several_python_threads_do_not_disturb_each_other(build_path: Path) -> None:
    kernels, packed = Library(build_path, 3), pack(drawn(1, 700, 256))
    inputs = [drawn(seed, 20, 256) for seed in range(4)]
    expected = [kernels.product(Matrix.of(packed))(x) for x in inputs]
    equal: list[bool] = []

    def many(index: int) -> None:
        equal.extend(
            torch.equal(kernels.product(Matrix.of(packed))(inputs[index]), expected[index]) for _ in range(200)
        )

    threads = [threading.Thread(target=many, args=[index]) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(equal) == 800 and all(equal)


def test_the_check_at_load_passes_here(kernels: Library) -> None:
    assert kernels.is_right()
