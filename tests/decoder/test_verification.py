"""What a step reads of a pass, in one piece or in several: the same tokens, the same log-probabilities."""

import pytest
import torch

from ladechat.decoder.acceptance import finite, log_probabilities
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder
from ladechat.decoder.reading import in_one_piece, read
from ladechat.model import eager
from tests.tiny import random_model, run, runner_for


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_read_in_one_piece_is_what_is_read_row_by_row(dtype: torch.dtype) -> None:
    logits = (5 * torch.randn(40, 3000, generator=torch.Generator().manual_seed(1))).to(dtype)
    tokens, logprobs = in_one_piece(logits)
    assert tokens == logits.argmax(-1).tolist() == read(logits)[0]
    assert logprobs == pytest.approx(log_probabilities(logits, range(40), tokens), abs=1e-5)


def test_a_token_id_of_a_large_vocabulary_is_read_exactly() -> None:
    logits = torch.zeros(1, 262_145)
    logits[0, -1] = 1.0
    assert in_one_piece(logits)[0] == [262_144]


def test_steps_say_the_same_however_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for decoder in (AutoregressiveDecoder, LookaheadDecoder):
        model = random_model(1)
        bit_by_bit = run(decoder(runner_for(model)), [5, 6, 7, 5, 6], 30)
        with monkeypatch.context() as patch:
            patch.setattr(eager, "read", in_one_piece)
            at_once = run(decoder(runner_for(model)), [5, 6, 7, 5, 6], 30)
        assert [step.tokens for step in at_once] == [step.tokens for step in bit_by_bit]
        for one, other in zip(at_once, bit_by_bit, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_are_noticed(bad: float) -> None:
    logits = torch.zeros(2, 5)
    logits[1, 3] = bad
    _, logprobs = in_one_piece(logits)
    assert finite(logprobs[:1])
    with pytest.raises(FloatingPointError, match="not finite"):
        finite(logprobs)
