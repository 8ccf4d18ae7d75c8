"""Products in tiles: by AMX where the processor has it, elsewhere by a model of it in plain C++."""

import re
import subprocess
from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st

from ladechat.model.kernels.library import Library
from ladechat.model.kernels.packing import TILED, Packed, pack
from ladechat.model.kernels.structures import Matrix
from tests.model.kernels.test_library import drawn
from tests.model.kernels.test_sanitized import CSRC, STANDARD, compiler_or_skip
from tests.model.kernels.test_swap import processor_has

AMX = ["-march=haswell", "-mamx-tile", "-mamx-bf16"]
"""The compiler's own headers for AVX-512 have warnings."""


def in_tiles(weight: torch.Tensor) -> Packed:
    packed = pack(weight, tiles=True)
    assert packed.kind == TILED
    return packed


def short(*weights: int) -> torch.Tensor:
    """Weights that bfloat16 holds."""
    return drawn(*weights).bfloat16().float()


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 40),
    inner=st.integers(1, 130),
    columns=st.integers(1, 100),
    with_bias=st.booleans(),
)
def test_a_product_in_tiles_is_the_product_with_the_weights(
    library: Library, seed: int, rows: int, inner: int, columns: int, with_bias: bool
) -> None:
    weight, x = short(seed, columns, inner), drawn(seed + 1, rows, inner)
    bias = drawn(seed + 2, columns) if with_bias else torch.zeros(columns)
    y = library.product(Matrix.of(in_tiles(weight), bias if with_bias else None))(x)
    exact = x.double() @ weight.double().T + bias
    sizes = x.abs().double() @ weight.abs().double().T + bias.abs()
    assert bool(((y - exact).abs() <= 2**-22 * sizes).all())


@pytest.mark.parametrize("rows", [1, 16, 40])
def test_blocks_that_are_multiplied_two_at_a_time_have_the_bits_of_single_ones(library: Library, rows: int) -> None:
    weight, x = short(1, 2117, 70), drawn(2, rows, 70)
    y = library.product(Matrix.of(in_tiles(weight)))(x)
    for some in (slice(0, 64), slice(1000, 1040), slice(2100, 2117)):
        assert torch.equal(y[:, some], library.product(Matrix.of(in_tiles(weight[some])))(x))


@pytest.mark.parametrize("inner", [576, 1536])
def test_a_sum_in_tiles_is_nearer_to_the_exact_one_than_a_plain_sum_in_float32(library: Library, inner: int) -> None:
    weight, x = short(1, 64, inner), drawn(2, 8, inner)
    exact, plain = x.double() @ weight.double().T, torch.zeros(8, 64)
    for i in range(inner):
        plain += x[:, i, None] * weight[:, i]
    found = library.product(Matrix.of(in_tiles(weight)))(x)
    assert (found - exact).abs().max() <= (plain - exact).abs().max()
    assert (found - exact).square().mean() <= (plain - exact).square().mean()


def test_a_row_has_the_same_bits_among_1_to_128_rows_and_in_any_place(library: Library) -> None:
    product, x = library.product(Matrix.of(in_tiles(short(1, 45, 40)))), drawn(2, 128, 40)
    expected = torch.cat([product(row[None]) for row in x])
    for rows in range(1, 129):
        assert torch.equal(product(x[:rows]), expected[:rows])
        assert torch.equal(product(x[-rows:]), expected[-rows:])


@given(seed=st.integers(0, 2**31), inner=st.integers(1, 100), columns=st.integers(1, 100))
def test_weights_in_tiles_are_read_as_they_were_packed(seed: int, inner: int, columns: int) -> None:
    weight = short(seed, columns, inner)
    packed = in_tiles(weight)
    assert torch.equal(packed.weight(), weight)
    tokens = torch.tensor([[0, columns - 1, columns // 2]])
    assert torch.equal(packed.rows(tokens), weight[tokens])


def test_weights_that_bfloat16_does_not_hold_are_not_in_tiles() -> None:
    assert pack(drawn(1, 8, 8), tiles=True).kind == "float32"
    assert pack(drawn(1, 8, 8).half().float(), tiles=True).kind == "float16"


def test_sums_over_the_first_and_the_second_inputs_of_pairs_are_apart(library: Library) -> None:
    """In one sum, 1 would be lost beside 2²⁴."""
    product = library.product(Matrix.of(in_tiles(torch.ones(1, 3))))
    assert product(torch.tensor([[2.0**24, 1.0, -(2.0**24)]])).item() == 1
    assert product(torch.tensor([[2.0**24, -(2.0**24), 1.0]])).item() == 0


def test_numbers_below_the_least_normal_one_are_0(library: Library) -> None:
    product = library.product(Matrix.of(in_tiles(torch.full((1, 1), 2.0**-20))))
    assert product(torch.tensor([[2.0**-106], [2.0**-107], [2.0**-127]])).flatten().tolist() == [2.0**-126, 0, 0]


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_a_row_with_what_is_no_number_is_none_and_others_are(library: Library, wrong: float) -> None:
    x = drawn(1, 20, 70)
    x[17, 3] = wrong
    y = library.product(Matrix.of(in_tiles(short(2, 40, 70))))(x)
    assert bool(y[17].isnan().all()) and bool(y[:17].isfinite().all()) and bool(y[18:].isfinite().all())


CALLS = {
    "Amx::shape(*static_cast<const Shape*>(at))": "_tile_loadconfig(at)",
    "Amx::release()": "_tile_release()",
    "Amx::zero<3>()": "_tile_zero(3)",
    "Amx::load<5>(static_cast<const Line*>(at))": "_tile_loadd(5, at, 64)",
    "Amx::multiply<1, 6, 5>()": "_tile_dpbf16ps(1, 6, 5)",
    "Amx::store<2>(static_cast<float*>(at), 32)": "_tile_stored(2, at, 128)",
}
"""Our functions for tiles, and the compiler's own."""


def test_our_functions_for_tiles_give_the_instructions_that_the_compilers_own_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [call for pair in CALLS.items() for call in pair]
    functions = [f'extern "C" void call{i}(void* at) {{ {call}; }}' for i, call in enumerate(calls)]
    source = tmp_path / "calls.cpp"
    source.write_text("\n".join(['#include <immintrin.h>\n#include "tiles.h"\nusing namespace ladechat;', *functions]))
    command = [*compiler_or_skip(monkeypatch), *STANDARD, "-O1", "-w", *AMX, "-S", str(source), "-o", "-"]
    assembly = compiled_for_amx(command)
    bodies = [assembly.partition(f"\ncall{i}:")[2].partition(".cfi_endproc")[0] for i in range(len(calls))]
    written = [[line.split() for line in body.splitlines() if re.match(r"\t\w", line)] for body in bodies]
    assert all(any(word.startswith(("til", "ldtil", "tdp")) for line in lines for word in line) for lines in written)
    assert written[::2] == written[1::2]


@pytest.mark.full
def test_the_products_are_right_in_a_library_that_could_use_amx_and_the_compiler_warns_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the processor has AMX, or announces it and the system refuses it, or has none."""
    path = tmp_path / "kernels.so"
    strict = ["-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = [str(CSRC / "kernels.cpp"), "-o", str(path)]
    compiled_for_amx([*compiler_or_skip(monkeypatch), *STANDARD, *strict, *AMX, *source])
    library = Library(path, threads=2)
    weight, x = short(1, 100, 70), drawn(2, 40, 70)
    y = library.product(Matrix.of(in_tiles(weight)))(x)
    torch.testing.assert_close(y, x @ weight.T, atol=1e-4, rtol=1e-4)
    assert library.is_right()
    assert "amx_bf16" in processor_has() or not library.tiles


def compiled_for_amx(command: list[str]) -> str:
    """What a compiler prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if re.search("unrecognized|unknown argument", done.stderr):
        pytest.skip("This compiler does not know AMX.")
    assert done.returncode == 0, done.stderr
    return done.stdout
