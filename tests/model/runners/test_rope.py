"""Across the boundary where a text's length changes the rotary angles: what transformers' own generation writes."""

from copy import deepcopy
from typing import Any

import pytest
from transformers import AutoConfig, PreTrainedModel

from ladechat.decoder.loop import Decoder
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.rope import RECOMPUTED, RopeBoundary, rope_boundary, stretched_context
from ladechat.registry import lookahead
from tests.tiny import SHAPE, VOCABULARY, generated, new_model, random_model, run, runner_for, tokens_of

AT = 48
BEYOND = 24
"""Tokens of a text that crosses the boundary in its first step, or goes on behind it."""
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [8.0, 4.0, 2.0, 1.5]}
MODELS: dict[str, dict[str, Any]] = {
    "llama, dynamic": {"model_type": "llama", "max_position_embeddings": AT, "rope_parameters": DYNAMIC},
    "llama, longrope": {
        "model_type": "llama",
        "rope_parameters": {**LONG, "original_max_position_embeddings": AT, "factor": 4.0},
    },
    "phi3, longrope": {"model_type": "phi3", "original_max_position_embeddings": AT, "rope_parameters": LONG},
}
W_N_G = (5, 4, 5)
PROMPT = [3 + (7 * i * i + 3 * i) % (VOCABULARY - 3) for i in range(30)]  # no 0: generate takes it for padding


def fresh(name: str) -> PreTrainedModel:
    """A model that has read nothing yet: one with dynamic angles keeps those of the longest text that it has read."""
    model: PreTrainedModel = new_model(30, **deepcopy(MODELS[name]))
    return model


def expected_text(name: str, prompt: list[int], limit: int) -> list[int]:
    """What generate writes; where it would forget the text at the boundary, what it writes without a cache."""
    model = fresh(name)
    assert model.generation_config is not None
    model.generation_config.use_cache = MODELS[name]["model_type"] not in RECOMPUTED
    return generated(model, prompt, limit)


@pytest.mark.parametrize(
    "length", [AT - 1, AT, *(pytest.param(length, marks=pytest.mark.full) for length in (5, AT - 12, AT + 1, AT + 20))]
)
@pytest.mark.parametrize("name", MODELS)
def test_text_is_that_of_generate_before_across_and_beyond_the_boundary(name: str, length: int) -> None:
    prompt = (PROMPT * 3)[:length]
    limit = max(0, AT - length) + BEYOND
    expected = expected_text(name, prompt, limit)
    assert len(set(expected)) > 3
    for chunk in (512, 7):
        runner = runner_for(fresh(name), chunk=chunk)
        assert tokens_of(run(Decoder(runner), prompt, limit)) == expected
        runner = runner_for(fresh(name), chunk=chunk)
        assert tokens_of(run(lookahead(runner, *W_N_G), prompt, limit)) == expected


@pytest.mark.parametrize("name", MODELS)
def test_drafts_across_the_boundary_would_change_what_the_model_says(name: str) -> None:
    """Or these tests would show nothing: one slot, in a pass that ends before the boundary and in one beyond it."""
    said = []
    for slots in ([1], [1, 2, 3, 4, 5, 6]):
        runner = runner_for(fresh(name))
        runner._rope = None
        list(runner.prefill((PROMPT * 2)[: AT - 2]))
        said.append(runner.forward(SlotTree.chain(slots))[0])
    assert (said[0] - said[1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_later_prompts_do_not_see_the_angles_of_earlier_ones(name: str) -> None:
    runner = runner_for(fresh(name))
    for prompt in (PROMPT, PROMPT * 2, PROMPT, (PROMPT * 2)[:AT], PROMPT * 3, PROMPT * 2 + [4]):
        expected = expected_text(name, prompt, 20)
        assert tokens_of(run(lookahead(runner, *W_N_G), prompt, 20)) == expected


@pytest.mark.parametrize("name", MODELS)
def test_another_decoder_may_go_on_beyond_the_boundary(name: str) -> None:
    expected = expected_text(name, PROMPT, 40)
    runner = runner_for(fresh(name))
    begun = tokens_of(run(Decoder(runner), PROMPT, 25))
    assert tokens_of(run(lookahead(runner, *W_N_G), [*PROMPT, *begun], 15)) == expected[25:]


def test_passes_are_large_again_beyond_a_boundary_that_is_crossed_once() -> None:
    steps = run(lookahead(runner_for(fresh("phi3, longrope")), *W_N_G), PROMPT * 2, 10)
    assert min(step.slots for step in steps) > 5


def test_no_pass_crosses_the_boundary() -> None:
    steps = run(lookahead(runner_for(fresh("llama, dynamic")), *W_N_G), PROMPT, AT)
    assert max(step.slots for step in steps if step.cache_length < AT - 8) > 10
    assert {step.slots for step in steps if step.cache_length >= AT - 1} == {1}


def test_a_pass_that_would_cross_it_is_refused() -> None:
    runner = runner_for(fresh("llama, longrope"))
    list(runner.prefill((PROMPT * 2)[: AT - 1]))
    assert runner.max_positions == 2
    runner.forward(SlotTree.chain([1, 2]))
    with pytest.raises(ValueError, match="angles"):
        runner.forward(SlotTree.chain([1, 2, 3]))


def test_ordinary_positions_have_no_boundary() -> None:
    model = random_model(0)
    assert rope_boundary(model.config) is None
    runner = runner_for(model, context_length=20)
    list(runner.prefill(PROMPT[:15]))
    assert runner.max_positions == 6


def test_the_nearest_boundary_counts_where_kinds_of_layers_have_their_own() -> None:
    config = AutoConfig.for_model("gemma3_text", max_position_embeddings=4096)
    config.rope_parameters = {
        "sliding_attention": {"rope_type": "default"},
        "full_attention": {"rope_type": "longrope", "original_max_position_embeddings": 100},
    }
    assert rope_boundary(config) == RopeBoundary("longrope", 100)


def test_a_context_is_as_long_as_its_scaling_says() -> None:
    assert stretched_context(fresh("llama, dynamic").config, AT) == 4 * AT
    assert stretched_context(fresh("phi3, longrope").config, 512) == 512
    assert stretched_context(random_model(0).config, 512) == 512


@pytest.mark.parametrize(
    ("rope", "positions"),
    [
        ({"rope_type": "linear", "factor": 4.0}, 4 * 512),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}, 4 * 512),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}, 512),
        ({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 128}, 1024),
        ({"rope_type": "yarn", "factor": 2.0}, 2 * 512),
        (
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "original_max_position_embeddings": 64,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
            },
            512,
        ),
    ],
)
def test_the_context_is_the_stretched_one_where_the_config_says_the_one_before(
    rope: dict[str, Any], positions: int
) -> None:
    config = AutoConfig.for_model("llama", **SHAPE, rope_parameters={"rope_theta": 1e4, **rope})
    assert stretched_context(config, config.max_position_embeddings) == positions


def test_a_model_whose_kinds_of_layers_are_stretched_apart_says_the_context_that_it_has() -> None:
    layers = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}}
    config = AutoConfig.for_model("gemma3_text", **SHAPE, rope_parameters=layers)
    assert stretched_context(config, config.max_position_embeddings) == 512


def test_the_angles_of_a_length() -> None:
    switched, growing = RopeBoundary("longrope", 10), RopeBoundary("dynamic", 10)
    assert [switched.angles(length) for length in (1, 10, 11, 99)] == [0, 0, 1, 1]
    assert [growing.angles(length) for length in (1, 10, 11, 99)] == [10, 10, 11, 99]
    assert [switched.max_positions(position) for position in (0, 9, 10)] == [10, 1, None]
    assert [growing.max_positions(position) for position in (0, 9, 10)] == [10, 1, 1]
