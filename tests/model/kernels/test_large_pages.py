"""Memory in large pages: what each tensor holds is its own."""

import mmap
from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st

from ladechat.model.kernels.large_pages import CHUNK, LINE, PAGE, LargePages, prefer_large_pages

SHAPES = st.lists(st.integers(0, 40), max_size=3)


@given(st.lists(st.tuples(SHAPES, st.sampled_from([torch.uint8, torch.bfloat16, torch.float32])), max_size=20))
def test_tensors_do_not_overlap_and_begin_with_a_cache_line(wanted: list[tuple[list[int], torch.dtype]]) -> None:
    room = LargePages()
    given = [room.empty(shape, dtype) for shape, dtype in wanted]
    for number, (tensor, (shape, dtype)) in enumerate(zip(given, wanted, strict=True)):
        assert (list(tensor.shape), tensor.dtype) == (shape, dtype) and tensor.is_contiguous()
        assert tensor.data_ptr() % LINE == 0
        tensor.fill_(number)
    assert all(bool((tensor == number).all()) for number, tensor in enumerate(given))


def test_a_tensor_larger_than_what_is_asked_for_at_a_time_has_its_room() -> None:
    room = LargePages()
    before, large, after = (
        room.empty([3], torch.uint8),
        room.empty([CHUNK + 1], torch.uint8),
        room.empty([3], torch.uint8),
    )
    before.fill_(1), after.fill_(3)
    large[[0, -1]] = 2
    assert [before.tolist(), large[[0, -1]].tolist(), after.tolist()] == [[1] * 3, [2, 2], [3] * 3]


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="Linux only")
def test_the_system_is_asked_for_large_pages() -> None:
    """It notes the advice, "hg", for each range of addresses, whether it has such pages or not."""
    tensor = prefer_large_pages(torch.empty(3 * PAGE, dtype=torch.uint8))
    advised, flags = 0, ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        start, _, rest = line.partition("-")
        if rest and all(digit in "0123456789abcdef" for digit in start):
            own = int(start, 16) <= tensor.data_ptr() + PAGE < int(rest.split()[0], 16)
        elif own and line.startswith("VmFlags"):
            advised, flags = advised + 1, line
    assert advised == 1 and " hg" in flags


def test_a_small_tensor_is_left_as_it_is() -> None:
    tensor = torch.ones(100)
    assert prefer_large_pages(tensor) is tensor
