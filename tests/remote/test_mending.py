"""Chunks that held several passes are taken apart by what the server tells at the end."""

import pytest

from ladechat.remote.dialects.vllm import pass_tokens


@pytest.mark.parametrize(
    ("chunks", "accepted", "passes"),
    [
        ([1, 3, 1, 2], [2, 0, 1], [1, 3, 1, 2]),  # one pass a chunk
        ([1, 3, 3], [2, 0, 1], [1, 3, 1, 2]),  # two in the last
        ([4, 3], [2, 0, 1], [1, 3, 1, 2]),  # the prompt's pass together with the first
        ([1, 1, 1, 4], [3], [1, 1, 1, 4]),  # passes without drafts are left out of the list
        ([1, 5], [2], [1, 3, 1, 1]),
        ([1, 3, 2], [2, 4], [1, 3, 2]),  # the last one is cut by the limit of the answer
        ([1, 1, 1], [], [1, 1, 1]),
    ],
)
def test_the_passes_of_an_answer(chunks: list[int], accepted: list[int], passes: list[int]) -> None:
    assert pass_tokens(chunks, accepted) == passes
    assert sum(passes) == sum(chunks)


def test_figures_that_do_not_fit_the_chunks_tell_no_passes() -> None:
    assert pass_tokens([1, 2], [5, 5]) is None
