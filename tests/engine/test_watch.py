"""What an engine works out for eyes alone: from when it is told that somebody looks, until nobody does."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from ladechat.protocol import Configure, Settings, SettingsApplied, Step, TurnStarted, Watch
from tests.engine.inside import inside
from tests.llama2 import save_checkpoint
from tests.made_up_maps import save_made_up

QUESTION = "What is it?"


def with_lens(steps: list[Step]) -> list[bool]:
    return [step.lens is not None for step in steps]


def test_pseudo_states_are_shown_while_somebody_looks_and_the_text_is_the_same(tmp_path: Path) -> None:
    save_made_up(save_checkpoint(tmp_path))
    with inside(tmp_path, Settings(decoder="hidden_transfer")) as wire:
        closed, end = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(with_lens(closed))
        wire.send(Watch(lens=True))
        opened, opened_end = wire.ask(QUESTION, max_new_tokens=12)
        assert with_lens(opened) == [False, *[True] * (len(opened) - 1)]
        assert opened_end.token_ids == end.token_ids
        for step in opened[1:]:
            assert step.lens is not None and step.draft is not None
            assert step.lens.layers[-1] == wire.ready.layers
            assert len(step.lens.rows[-1]) == 3
            assert step.lens.row_ids[-1][0] in step.draft.token_ids or not step.draft.token_ids
        wire.send(Configure(decoder="autoregressive"))
        wire.until(SettingsApplied)
        plain, plain_end = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(with_lens(plain)) and plain_end.token_ids == end.token_ids
        wire.send(Configure(decoder="hidden_transfer"))
        wire.send(Watch(lens=False))
        wire.until(SettingsApplied)
        again, again_end = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(with_lens(again)) and again_end.token_ids == end.token_ids


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_what_else_was_likely_is_the_distribution_of_the_model_alone(tmp_path: Path, temperature: float) -> None:
    """Checked against transformers' own pass over the whole text."""
    save_checkpoint(tmp_path)
    settings = Settings(decoder="lookahead", temperature=temperature, top_k=9, seed=3)
    with inside(tmp_path, settings) as wire:
        closed, _ = wire.ask(QUESTION, max_new_tokens=12)
        wire.send(Watch(rivals=True))
        steps, end = wire.ask(QUESTION, max_new_tokens=12)
        wire.send(Watch())
        later, _ = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(step.rivals for step in (*closed, *later))
        (started,) = wire.of_turn(TurnStarted, end.turn)
    model = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor([[*started.prompt_ids, *end.token_ids]])).logits[0]
    logs = logits[len(started.prompt_ids) - 1 : -1].log_softmax(-1)
    found = [(one, logprob) for step in steps for one, logprob in zip(step.rivals, step.logprobs, strict=True)]
    assert len(found) == len(end.token_ids)
    for (one, own), expected, token in zip(found, logs, end.token_ids, strict=True):
        assert one.logprobs == pytest.approx(expected.topk(5).values.tolist(), abs=1e-3) and len(one.pieces) == 5
        assert one.entropy == pytest.approx(float(-(expected.exp() * expected).sum()), abs=1e-3)
        assert own == pytest.approx(float(expected[token]), abs=1e-3)
    assert all(own == pytest.approx(one.logprobs[0], abs=1e-3) for one, own in found) == (not temperature)
