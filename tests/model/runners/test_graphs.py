"""Recorded passes: the text and the logits of the model itself, whatever they are recorded with, and when they are.

Without a GPU a recording is the same function run once more: that inputs reach it through fixed memory alone, that it
is dropped when memory moves, and that it is the right one, is the same in both cases.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners import graphs, tree
from ladechat.model.runners.graphs import SLOT_COUNTS, GraphPasses, Replay, context_for, unrecorded
from ladechat.model.runners.logits import fill
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead
from ladechat.tuning.costs import PassCosts
from tests.model.runners.recorded_models import MODELS, model_of, written
from tests.model.runners.trees import random_tree
from tests.tiny import SHAPE, VOCABULARY, generated, random_model, run, runner_for, tokens_of

TOLERANCE = 1e-4
pytestmark = pytest.mark.usefixtures("small_steps")


def recorded(model: PreTrainedModel) -> tuple[TreeRunner, GraphPasses]:
    runner = runner_for(model, context_length=2048)
    runner.use_graphs(unrecorded)
    assert runner.graphs is not None
    return runner, runner.graphs


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_pass_gives_and_caches_what_the_model_does(name: str) -> None:
    """Layouts with windows and trees, at lengths about the boundaries, in slabs that grow; and on from what is kept."""
    dice = random.Random(name)
    model = model_of(name)
    ours, passes = recorded(model)
    theirs = runner_for(model, context_length=2048)
    text = [dice.randrange(VOCABULARY) for _ in range(520)]
    for length in (2, 25, 33, 47, 95, 490, 513, 60):
        for runner in (ours, theirs):
            fill(runner, text[:length])
        for _ in range(2):
            tree = random_tree(dice, VOCABULARY)
            passes._record_size(next(slots for slots in SLOT_COUNTS if slots >= len(tree)))
            expected, found = theirs.forward(tree), ours.forward(tree)
            assert found.data_ptr() == passes._logits.data_ptr()
            assert (found - expected).abs().max() <= TOLERANCE * max(1.0, float(expected.abs().max()))
            kept = sorted(dice.sample(range(len(tree)), min(len(tree), dice.randint(0, 3))))
            for runner in (ours, theirs):
                runner.commit(kept)
            for mine, other in zip(*(one.cache.all_rows(one.cache.length) for one in (ours, theirs)), strict=True):
                torch.testing.assert_close(mine, other, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral, window"])
def test_texts_are_those_of_plain_decoding_and_of_generate(name: str) -> None:
    model = model_of(name, 0)
    prompt = [random.Random(0).randrange(3, VOCABULARY) for _ in range(20)]
    expected = generated(model, prompt, 60)
    for w_n_g in ((0, 2, 0), (5, 4, 5), (15, 5, 15)):
        runner, passes = recorded(model)
        assert tokens_of(run(lookahead(runner, *w_n_g), prompt, 60)) == expected
        assert len(passes.history) >= 2


def test_w_n_and_g_may_change_while_an_answer_is_written() -> None:
    model = model_of("llama")
    dice = random.Random(1)
    runner, passes = recorded(model)
    decoder = lookahead(runner)
    tokens: list[int] = []
    for step in decoder.run([5, 6, 7], Limits(120)):
        tokens += step.tokens
        decoder.configure({"window": dice.randint(0, 15), "ngram": dice.randint(2, 6), "guesses": dice.randint(0, 15)})
    assert tokens == written(model, [5, 6, 7], 120)
    assert len({made.slots for made in passes.history}) > 2


class Watched:
    """Records nothing, and counts what is recorded and played."""

    def __init__(self) -> None:
        self.recorded = 0
        self.played = 0
        self.fails: Callable[[], bool] = lambda: False

    def __call__(self, function: Callable[[], None]) -> Replay:
        if self.fails():
            raise RuntimeError("operation not permitted when stream is capturing")
        self.recorded += 1
        function()

        def replay() -> None:
            self.played += 1
            function()

        return replay


def watched(model: PreTrainedModel) -> tuple[TreeRunner, Watched]:
    runner, record = runner_for(model, context_length=2048), Watched()
    runner.use_graphs(record)
    return runner, record


def one_pass(runner: TreeRunner, count: int = 1) -> None:
    runner.forward(SlotTree.chain([5] * count))
    runner.commit([])


def test_a_pass_is_recorded_between_two_steps_after_its_second_use() -> None:
    runner, record = watched(model_of("llama"))
    fill(runner, list(range(10)))
    assert record.recorded == 0
    one_pass(runner)
    assert record.recorded == 0
    runner.forward(SlotTree.chain([5]))
    assert record.recorded == 0
    runner.commit([])
    assert (record.recorded, record.played) == (1, 0)
    one_pass(runner)
    assert (record.recorded, record.played) == (1, 1)
    one_pass(runner, 5)
    one_pass(runner, 8)
    one_pass(runner, 6)
    assert (record.recorded, record.played) == (2, 2)
    one_pass(runner, SLOT_COUNTS[-1] + 1)
    assert (record.recorded, record.played) == (2, 2)


def test_all_sizes_are_recorded_before_they_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or `auto` would think for long that passes cost what they cost without a graph."""
    runner, record = watched(model_of("llama"))
    fill(runner, list(range(10)))
    monkeypatch.setattr(runner, "_model_pass", lambda *_: pytest.fail("a pass is timed that is not recorded"))
    PassCosts(runner).refresh()
    assert record.recorded == len(SLOT_COUNTS) and runner.cache.length == 9


def test_the_pass_for_a_longer_text_is_there_when_it_is_needed() -> None:
    runner, record = watched(model_of("llama"))
    played = [len(run(Decoder(runner), [5, 6, 7], 90)), record.played]
    assert played == [90, 88]
    assert record.recorded == 4  # 32, 48, 64 and 96 places


def test_recordings_of_a_slab_that_was_replaced_are_not_played() -> None:
    runner, record = watched(model_of("llama"))
    assert runner.cache.capacity == 512
    fill(runner, list(range(90)) * 2)
    for _ in range(3):
        one_pass(runner)
    assert (record.recorded, record.played) == (1, 1)
    fill(runner, (list(range(90)) * 8)[:600])
    assert runner.cache.capacity > 512
    fill(runner, list(range(90)) * 2)
    one_pass(runner)
    assert (record.recorded, record.played) == (2, 1)
    one_pass(runner)
    assert (record.recorded, record.played) == (2, 2)


def test_what_cannot_be_recorded_is_left_to_the_model_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    model = model_of("llama")
    runner, record = watched(model)
    calls = iter(range(10**6))
    record.fails = lambda: next(calls) == 0
    assert tokens_of(run(Decoder(runner), [5, 6, 7], 100)) == written(model, [5, 6, 7], 100)
    assert caplog.text.count("has no CUDA graph") == 1 and "not permitted" in caplog.text
    assert record.recorded == 4  # those for longer texts: 48, 64, 96, 128


def test_a_recording_that_breaks_is_left_to_the_model(caplog: pytest.LogCaptureFixture) -> None:
    model = model_of("llama")
    runner = runner_for(model, context_length=2048)
    tried = Counter[str]()

    def record(function: Callable[[], None]) -> Replay:
        def replay() -> None:
            tried["played"] += 1
            raise RuntimeError("device-side failure")

        return replay

    runner.use_graphs(record)
    assert tokens_of(run(Decoder(runner), [5, 6, 7], 20)) == written(model, [5, 6, 7], 20)
    assert tried["played"] == 1 and "device-side failure" in caplog.text


def test_the_recording_that_was_used_the_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 2)
    runner, record = watched(model_of("llama"))
    fill(runner, list(range(10)))
    for count in (1, 8, 1, 16):
        for _ in range(3):
            one_pass(runner, count)
    assert record.recorded == 3
    one_pass(runner, 1)
    assert record.recorded == 3
    one_pass(runner, 8)
    assert record.recorded == 4


def test_numbers_that_are_none_do_not_spoil_the_next_answer() -> None:
    model = model_of("llama")
    runner, _ = recorded(model)
    run(Decoder(runner), [5, 6, 7], 20)
    for row in runner.cache.all_rows(runner.cache.capacity):
        row[runner.cache.length :] = torch.nan
    assert tokens_of(run(Decoder(runner), [5, 6, 7], 40)) == written(model, [5, 6, 7], 40)


@pytest.mark.parametrize("places", [1, 32, 33, 48, 49, 64, 65, 96, 97, 1000])
def test_a_context_has_room_and_wastes_no_more_than_half(places: int) -> None:
    assert places <= context_for(places) <= max(32, 3 * places // 2)


def test_models_whose_angles_change_or_that_attend_in_another_way_are_not_recorded() -> None:
    stretched = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    config = AutoConfig.for_model("llama", **{**SHAPE, "rope_parameters": stretched})
    for model in (AutoModelForCausalLM.from_config(config).eval(), random_model(3, attn_implementation="eager")):
        runner = runner_for(model)
        runner.use_graphs(unrecorded)
        assert runner.graphs is None


def test_passes_are_recorded_on_a_cuda_device_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("llama")
    runner, passes = runner_for(model), cast(GraphPasses, object())
    monkeypatch.setattr(tree, "graph_passes", lambda *_, **__: passes)
    runner.use_graphs()
    assert runner.graphs is None
    monkeypatch.setattr(TreeRunner, "device", torch.device("cuda"))
    runner.use_graphs()
    assert runner.graphs is passes
