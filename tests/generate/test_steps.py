"""`lookahead_steps`: the steps of one row, as they come."""

import pytest
import torch

from ladechat import lookahead_steps
from ladechat.decoder.sampler import Sampling
from tests.generate.requests import PROMPT
from tests.tiny import plain, random_model, tokens_of


def test_steps_add_up_to_the_text_and_say_what_they_drafted() -> None:
    model = random_model(1)
    steps = list(lookahead_steps(model, PROMPT, max_new_tokens=20, eos_token_id=[], window=4, ngram=4, guesses=4))
    assert tokens_of(steps) == plain(model, PROMPT[0].tolist(), 20)
    assert all(step.window is not None and step.draft is not None for step in steps[:5])


def test_steps_end_with_the_models_own_end_of_text_and_may_be_sampled() -> None:
    model = random_model(1)
    sampling = Sampling(sample=True, generator=torch.Generator().manual_seed(3))
    sampled = tokens_of(list(lookahead_steps(model, PROMPT, max_new_tokens=400, sampling=sampling)))
    assert sampled.index(2) == len(sampled) - 1


def test_the_window_looks_beyond_the_last_token_that_may_be_written() -> None:
    steps = list(lookahead_steps(random_model(1), PROMPT, max_new_tokens=12, eos_token_id=[], window=15, ngram=5))
    assert all(step.window is not None for step in steps)


def test_several_rows_have_no_common_steps() -> None:
    with pytest.raises(ValueError, match="one row at a time"):
        lookahead_steps(random_model(1), PROMPT.repeat(2, 1), max_new_tokens=3)
