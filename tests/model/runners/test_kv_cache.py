"""The slab: what a pass writes, keeping slots, growing."""

import pytest
import torch

from ladechat.model.runners.kv_cache import SMALLEST_CAPACITY, SlabCache

SHAPES = [((2, 4), (2, 4)), ((1, 4), (1, 8)), ((2, 4), (2, 4))]


def cache(limit: int = 10_000) -> SlabCache:
    return SlabCache(SHAPES, torch.float32, torch.device("cpu"), limit)


def states(layer: int, tokens: list[float]) -> list[torch.Tensor]:
    """Keys and values that tell their token and layer."""
    return [torch.tensor(tokens)[None, None, :, None].expand(1, h, -1, d) + 1000 * layer for h, d in SHAPES[layer]]


def write(slab: SlabCache, tokens: list[float]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    slab.reserve(len(tokens))
    return [
        slab.update(keys, values, layer)
        for layer, (keys, values) in enumerate(states(layer, tokens) for layer in range(len(SHAPES)))
    ]


def held(slab: SlabCache) -> list[float]:
    """The tokens that the cache holds, having checked that all layers, keys and values agree."""
    rows = [row for layer in range(len(SHAPES)) for row in slab.rows(layer, slab.length)]
    for index, row in enumerate(rows):
        assert torch.equal(row - 1000 * (index // 2), rows[0][:, :1, :1].expand_as(row))
    return rows[0][:, 0, 0].tolist()


def test_a_pass_sees_what_is_cached_and_what_it_writes() -> None:
    slab = cache()
    write(slab, [1, 2, 3])
    slab.commit([0, 1, 2])
    for layer, seen in enumerate(write(slab, [4, 5])):
        for view, shape in zip(seen, SHAPES[layer], strict=True):
            assert view.shape == (1, shape[0], 5, shape[1])
            assert view[0, 0, :, 0].tolist() == [1000 * layer + token for token in (1, 2, 3, 4, 5)]


def test_kept_slots_move_into_place_in_all_layers_and_the_others_are_forgotten() -> None:
    slab = cache()
    write(slab, [1, 2])
    slab.commit([0, 1])
    write(slab, [10, 11, 12, 13, 14, 15])
    slab.commit([0, 3, 5])
    assert held(slab) == [1, 2, 10, 13, 15]
    write(slab, [20])
    slab.commit([])
    assert held(slab) == [1, 2, 10, 13, 15]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_slots_move_in_the_slabs_that_there_are_now(dtype: torch.dtype) -> None:
    """Also when these were replaced by larger ones, or given back, since slots were moved the last time."""
    slab = SlabCache(SHAPES, dtype, torch.device("cpu"), 10_000)
    expected: list[float] = []

    @torch.inference_mode()
    def write_and_move(tokens: list[float], slots: list[int]) -> None:
        slab.reserve(len(tokens))
        for layer in range(len(SHAPES)):
            keys, values = ((part % 1000).to(dtype) for part in states(layer, tokens))  # all types hold small numbers
            slab.update(keys, values, layer)
        slab.commit(slots)
        expected.extend(tokens[slot] for slot in slots)
        rows = [row for layer in range(len(SHAPES)) for row in slab.rows(layer, slab.length)]
        assert all(row[:, 0, 0].tolist() == expected for row in rows)

    write_and_move([1, 2, 3, 4], [0, 2, 3])
    write_and_move([5.0] * SMALLEST_CAPACITY + [6, 7, 8], [0, SMALLEST_CAPACITY, SMALLEST_CAPACITY + 2])
    assert slab.growths > 0
    write_and_move([9, 10, 11], [0, 2])
    slab.give_back()
    expected.clear()
    write_and_move([12, 13, 14], [0, 2])


def test_growing_keeps_what_is_cached() -> None:
    slab = cache()
    expected: list[float] = []
    while slab.capacity <= 4 * SMALLEST_CAPACITY:
        tokens = [float(len(expected) + i) for i in range(100)]
        write(slab, tokens)
        slab.commit(range(100))
        expected += tokens
    assert held(slab) == expected


def test_a_slab_that_cannot_grow_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    slab = cache()
    write(slab, [1, 2])
    slab.commit([0, 1])

    def no_memory(*_: object) -> torch.Tensor:
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "new_empty", no_memory)
        with pytest.raises(torch.OutOfMemoryError):
            slab.reserve(5000)
    write(slab, [3.0] * 600)
    slab.commit([0])
    assert held(slab) == [1, 2, 3]


def test_growing_does_not_pass_the_limit_unless_a_pass_needs_it() -> None:
    slab = cache(limit=700)
    write(slab, [0.0] * 600)
    assert slab.capacity == 700


def test_truncating_forgets_the_end() -> None:
    slab = cache()
    write(slab, [1, 2, 3])
    slab.commit([0, 1, 2])
    slab.truncate(1)
    assert held(slab) == [1]
    slab.truncate(5)
    assert held(slab) == [1]
