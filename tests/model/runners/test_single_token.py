"""The runner of models that take one slot a pass: their own generation, behind the interface of the others."""

import pytest
from transformers import PreTrainedModel

from ladechat.decoder.loop import Decoder
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead
from tests.tiny import generated, random_model, run, tokens_of
from tools.tiny_models import tiny_model

PROMPT = [5, 8, 13, 21, 34, 55, 8, 13, 21]


def runner_of(model: PreTrainedModel, context_length: int = 128) -> SingleTokenRunner:
    runner = choose_runner(model, context_length)
    assert isinstance(runner, SingleTokenRunner)
    return runner


@pytest.mark.parametrize("model_type", ["mamba", "bloom"])
def test_a_conversation_is_written_as_generate_writes_it(model_type: str) -> None:
    """A prompt, one that goes on from its answer, and one that has nothing to do with it."""
    model = tiny_model(model_type)
    runner = runner_of(model)
    answer = generated(model, PROMPT, 20)
    for prompt in (PROMPT, [*PROMPT, *answer, 4, 5, 6], PROMPT[3:]):
        assert tokens_of(run(Decoder(runner), prompt, 20)) == generated(model, prompt, 20)


def test_a_run_that_goes_on_is_not_read_again() -> None:
    model = tiny_model("mamba")
    runner = runner_of(model)
    begun = tokens_of(run(Decoder(runner), PROMPT, 10))
    assert runner.cached_prefix([*PROMPT, *begun]) == len(PROMPT) + 9
    assert list(runner.prefill([*PROMPT, *begun])) == []
    assert tokens_of(run(Decoder(runner), [*PROMPT, *begun], 10)) == generated(model, PROMPT, 20)[10:]


def test_another_decoder_is_refused_in_a_sentence() -> None:
    runner = runner_of(tiny_model("mamba"))
    with pytest.raises(ValueError, match=r"^Lookahead decoding cannot run .* recurrent state.*one token a pass\.$"):
        run(lookahead(runner), PROMPT)
    with pytest.raises(ValueError, match="recurrent state"):
        runner.forward(SlotTree.chain([1, 2]))


def test_a_context_has_its_end() -> None:
    runner = runner_of(tiny_model("mamba"), context_length=12)
    assert len(tokens_of(run(Decoder(runner), PROMPT, 20))) == 3
    with pytest.raises(ValueError, match="13 tokens does not fit a context of 12"):
        list(runner.prefill(range(13)))
    list(runner.prefill(range(12)))
    runner.forward(SlotTree.chain([1]))
    runner.commit([0])
    with pytest.raises(ValueError, match="beyond a context of 12"):
        runner.forward(SlotTree.chain([1]))


def test_a_model_that_follows_layouts_is_not_held_to_plain_decoding() -> None:
    runner = choose_runner(random_model(0), 64)
    assert isinstance(runner, TreeRunner) and runner.capabilities.tree_attention
