"""Which drafted tokens are accepted, and the log-probabilities of what is emitted."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

from ladechat.decoder.acceptance import accept, log_probabilities
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.logits import argmax_with_log_probabilities

guesses = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=6)
VOCABULARY = 4


@given(
    guesses,
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.integers(1, 7),
    st.sampled_from(["greedy", "drawn"]),
)
def test_acceptance_is_the_longest_prefix_that_a_guess_shares_with_the_text_and_one_token_more(
    tails: list[list[int]], text: list[int], room: int, how: str
) -> None:
    tree = SlotTree(9)
    for tail in tails:
        slot = 0
        for token in tail:
            slot = tree.add(slot, token)
    # The model says the same wherever a position is guessed: the text.
    says = [text[position] if position < len(text) else 0 for position in tree.positions]
    logits = torch.nn.functional.one_hot(torch.tensor(says), VOCABULARY).float()
    chosen: list[list[int]] = []
    emitted: list[int] = []

    def chooses(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        chosen.append(ids[0].tolist())
        return scores

    def ends(token: int) -> bool:
        emitted.append(token)
        return len(emitted) == room

    sampler = Sampler([9], Sampling([chooses] if how == "drawn" else []))
    accepted = accept(tree, logits, says, sampler, ends)
    longest = max((end for tail in tails for end in range(1, len(tail) + 1) if tail[:end] == text[:end]), default=0)
    assert list(accepted.tokens) == text[: min(longest + 1, room)]
    assert [tree.tokens[slot] for slot in accepted.path] == text[: min(longest, room)]
    assert accepted.read_slots == (0, *accepted.path)[: len(accepted.tokens)]
    # One choice and one question for an end for each emitted token, in order: a draw too many would change the next.
    assert emitted == list(accepted.tokens)
    if how == "drawn":
        assert chosen == [[9, *emitted[:end]] for end in range(len(emitted))]
    assert sampler.text == [9, *emitted]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_probabilities_read_at_once_are_those_read_row_by_row(dtype: torch.dtype) -> None:
    logits = (5 * torch.randn(40, 3000, generator=torch.Generator().manual_seed(1))).to(dtype)
    tokens, at_once = argmax_with_log_probabilities(logits)
    assert tokens == logits.argmax(-1).tolist()
    assert log_probabilities(logits, range(40), tokens) == pytest.approx(at_once, abs=1e-5)
    assert log_probabilities(logits, range(40), tokens, at_once) == tuple(at_once)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_are_noticed_in_the_slots_that_count(bad: float) -> None:
    logits = torch.zeros(2, 5)
    logits[1, 3] = bad
    tokens, at_once = argmax_with_log_probabilities(logits)
    assert log_probabilities(logits, [0], tokens[:1], at_once) == pytest.approx((-math.log(5),))
    for of_argmax in (at_once, None):
        with pytest.raises(FloatingPointError, match="not finite"):
            log_probabilities(logits, [0, 1], tokens, of_argmax)


def test_a_token_that_the_model_rules_out_may_be_forced_and_has_no_probability() -> None:
    logits = torch.tensor([[0.0, -torch.inf, 0.0], [0.0, torch.nan, 0.0]])
    assert log_probabilities(logits, [0, 0], [1, 2]) == pytest.approx((-math.inf, -math.log(2)))
    with pytest.raises(FloatingPointError):
        log_probabilities(logits, [0, 1], [0, 0])
