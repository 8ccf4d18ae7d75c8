"""The runner: every slot's logits are those of a plain causal pass over what the slot may see."""

import random
from typing import Any

import pytest
from torch import Tensor
from transformers import PreTrainedModel

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.logits import fill
from ladechat.registry import lookahead
from tests.model.runners.trees import check_slots_against_plain_passes, random_tree
from tests.tiny import VOCABULARY, demo_model, demo_prompt, generated, plain, random_model, run, runner_for, tokens_of

MANY_MORE = [pytest.param(seed, marks=pytest.mark.full) for seed in range(100, 200)]


@pytest.mark.parametrize("seed", [*range(6), *MANY_MORE])
def test_each_slot_has_the_logits_of_a_plain_pass_over_what_it_sees(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(dice.randrange(4))
    runner = runner_for(model, chunk=dice.randint(1, 20))
    fill(runner, [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 40))])
    check_slots_against_plain_passes(model, runner, random_tree(dice, VOCABULARY))


def test_each_slot_of_the_bundled_model_has_the_logits_of_a_plain_pass() -> None:
    runner = runner_for(demo_model())
    fill(runner, demo_prompt("What is the n-gram pool?"))
    check_slots_against_plain_passes(demo_model(), runner, random_tree(random.Random(1), 3000))


def sliding(model_type: str, **changes: object) -> PreTrainedModel:
    return random_model(1, model_type, sliding_window=6, **changes)


@pytest.mark.parametrize("model_type", ["mistral", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "qwen3", "phi3"])
def test_other_architectures_write_what_generate_writes(model_type: str) -> None:
    """Two with sliding windows shorter than the text among them, whose mask is cut to the window."""
    model = sliding(model_type) if model_type in ("mistral", "gemma2", "gemma3_text") else random_model(1, model_type)
    prompt = [5, 8, 13, 21, 34, 55, 8, 13, 21]
    steps = run(lookahead(runner_for(model), 6, 4, 6), prompt, 30)
    assert tokens_of(steps) == generated(model, prompt, 30)


def test_eager_attention_gets_a_mask_that_it_can_add() -> None:
    model = random_model(3, attn_implementation="eager")
    assert model.config._attn_implementation == "eager"
    steps = run(lookahead(runner_for(model), 6, 4, 6), [4, 5, 6, 4, 5], 40)
    assert tokens_of(steps) == plain(random_model(3), [4, 5, 6, 4, 5], 40)


def test_prefill_in_chunks_gives_the_same_text() -> None:
    model = random_model(2)
    prompt = [random.Random(0).randrange(VOCABULARY) for _ in range(150)]
    whole = plain(model, prompt, 20)
    for chunk in (1, 7, 64):
        runner = runner_for(model, chunk=chunk)
        done = list(runner.prefill(prompt))
        assert done == [*range(chunk, 149, chunk), 149]
        assert tokens_of(run(lookahead(runner), prompt, 20)) == whole


def test_a_text_that_outgrows_the_first_slab_is_decoded_the_same() -> None:
    model = random_model(2, max_position_embeddings=2048)
    prompt = [random.Random(0).randrange(VOCABULARY) for _ in range(480)]
    for length in (480, 600):
        text = (prompt + prompt)[:length]
        runner = runner_for(model, context_length=2048)
        assert tokens_of(run(lookahead(runner), text, 100)) == generated(model, text, 100)


def test_a_chunk_never_needs_a_mask_of_prompt_by_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_for(random_model(2), chunk=16)
    shapes = []
    original: Any = runner._masks._on_device

    def noted(visible: Tensor) -> Any:
        shapes.append(visible.shape)
        return original(visible)

    monkeypatch.setattr(runner._masks, "_on_device", noted)
    list(runner.prefill(list(range(90)) * 3))
    assert max(rows for *_, rows, _ in shapes) == 16


def test_the_common_prefix_stays_cached() -> None:
    runner = runner_for(random_model(2), chunk=4)
    list(runner.prefill([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    assert list(runner.prefill([1, 2, 3, 4, 5, 6, 9, 9, 9, 9])) == [9]
    assert list(runner.tokens) == [1, 2, 3, 4, 5, 6, 9, 9, 9]
    assert list(runner.prefill([1, 2, 3])) == []
    assert list(runner.tokens) == [1, 2]


def test_a_slot_beyond_the_context_is_refused() -> None:
    runner = runner_for(random_model(2), context_length=8)
    list(runner.prefill(list(range(8))))
    runner.forward(SlotTree.chain([1]))
    runner.commit([])
    with pytest.raises(ValueError, match="beyond a context of 8"):
        runner.forward(SlotTree.chain([1, 2]))
    with pytest.raises(ValueError, match="9 tokens does not fit"):
        list(runner.prefill(list(range(9))))
