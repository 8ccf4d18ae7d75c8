"""What every runner has to do: a new one is added to `RUNNERS`. The model itself, without a cache, is the judge."""

import copy
import random
from collections.abc import Callable, Generator
from typing import Any, NoReturn, cast

import pytest
import torch
from transformers import PreTrainedModel

from ladechat.decoder.hidden import Want
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.swap import swap
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.parallel.rank0 import Rank0Runner
from ladechat.model.runners.cpu_layers import fuse_layers
from ladechat.model.runners.graphs import unrecorded
from ladechat.model.runners.logits import fill
from ladechat.model.runners.model_runner import ModelRunner
from ladechat.model.runners.packed import PackedRunner
from tests.model.runners.trees import TOLERANCE, random_tree
from tests.packed import packed_runner, tiny_file, tiny_model as packed_model
from tests.tiny import VOCABULARY, layered_runner_for, random_model, runner_for
from tools.tiny_models import tiny_model

CONTEXT = 96
ROUNDED_CACHE = 0.05
"""The tolerance of a runner whose keys and values are cached in 16 bits."""


def with_graphs(model: PreTrainedModel) -> ModelRunner:
    runner = runner_for(model, context_length=CONTEXT)
    runner.use_graphs(unrecorded, kernels=False)
    runner.prepare()
    return runner


class NoWorkers:
    """In place of the processes that share a model."""

    def send(self, order: object) -> None:
        pass

    def on_error(self, error: Exception) -> NoReturn:
        raise error


MakeRunner = Callable[[PreTrainedModel], ModelRunner]
RUNNERS: dict[str, tuple[Callable[[], PreTrainedModel], MakeRunner]] = {
    "tree": (random_model, lambda model: runner_for(model, context_length=CONTEXT, chunk=7)),
    "layer by layer": (random_model, lambda model: layered_runner_for(model, context_length=CONTEXT)),
    "recorded": (random_model, with_graphs),
    "rank 0": (
        random_model,
        lambda model: Rank0Runner(runner_for(model, context_length=CONTEXT), cast(Any, NoWorkers())),
    ),
    "single token": (lambda: tiny_model("mamba"), lambda model: choose_runner(model, CONTEXT)),
    "packed": (packed_model, lambda _: packed_runner(tiny_file(), CONTEXT, slots=5)),
    "packed, with kernels": (packed_model, lambda _: packed_runner(tiny_file(), CONTEXT, slots=5)),
    "by kernels": (random_model, lambda model: layered_runner_for(model, context_length=CONTEXT)),
}


@pytest.fixture(params=RUNNERS)
def pair(request: pytest.FixtureRequest) -> tuple[PreTrainedModel, ModelRunner]:
    """A model, and a runner of it."""
    make_model, make_runner = RUNNERS[request.param]
    model = make_model()
    if request.param == "packed, with kernels":
        build = request.getfixturevalue("build")
        build.library()
        return model, packed_runner(tiny_file(), CONTEXT, slots=5, kernels=build)
    if request.param != "by kernels":
        return model, make_runner(model)
    library, ours = request.getfixturevalue("library"), copy.deepcopy(model)
    swap(ours, library)
    assert fuse_layers(ours, library)
    return model, make_runner(ours)


def logits_after(model: PreTrainedModel, text: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([text])).logits[0, -1]
    return logits


def check(model: PreTrainedModel, text: list[int], tree: SlotTree, logits: torch.Tensor, runner: ModelRunner) -> None:
    """Each slot has the logits of the text that it sees, and the argmax and the largest ones are theirs."""
    tolerance = ROUNDED_CACHE if isinstance(runner, PackedRunner) else TOLERANCE
    found, logprobs = runner.argmax(logits)
    assert len(found) == len(logits) == len(tree)
    for slot in range(len(tree)):
        seen = [tree.tokens[other] for other in tree.mask[slot].nonzero()[0]]
        expected = logits_after(model, [*text, *seen])
        torch.testing.assert_close(logits[slot], expected, atol=tolerance, rtol=tolerance)
        assert found[slot] == int(logits[slot].argmax())
        if logprobs is not None:
            assert logprobs[slot] == pytest.approx(float(logits[slot].log_softmax(-1).max()), abs=1e-4)
    assert runner.largest(logits, 3).tolist() == logits.topk(3).indices.tolist()


def path_of(tree: SlotTree, slot: int) -> list[int]:
    """From slot 0 to this one."""
    path = [slot]
    while path[0]:
        path.insert(0, tree.parents[path[0]])
    return path


@pytest.mark.parametrize("seed", range(3))
def test_passes_commits_and_prompts_in_any_order(pair: tuple[PreTrainedModel, ModelRunner], seed: int) -> None:
    """Prompts that share a beginning or not; passes over any tree; any path of it is committed, or nothing."""
    (model, runner), dice = pair, random.Random(seed)
    text: list[int] = []
    for _ in range(6):
        kept = text[: dice.randint(0, len(text))]
        text = [*kept, *(dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 20)))]
        for cached in runner.prefill(text):
            assert 0 <= cached <= len(text) - 1
        assert list(runner.tokens) == text[:-1]
        for _ in range(dice.randint(0, 3)):
            tree = random_tree(dice, VOCABULARY) if runner.capabilities.tree_attention else SlotTree(0)
            tree.truncate(min(len(tree), runner.max_positions, 8))
            tree.tokens[0] = text[-1]
            logits = runner.forward(tree)
            check(model, text[:-1], tree, logits, runner)
            path = path_of(tree, dice.randrange(len(tree))) if dice.random() < 0.8 else []
            runner.commit(path)
            text = [*text[:-1], *(tree.tokens[slot] for slot in path), dice.randrange(VOCABULARY)] if path else text
            assert list(runner.tokens) == text[:-1]
        text = text[: CONTEXT // 2]


def test_a_prompt_that_is_stopped_on_the_way_is_gone_on_with(pair: tuple[PreTrainedModel, ModelRunner]) -> None:
    model, runner = pair
    text = [random.Random(7).randrange(VOCABULARY) for _ in range(30)]
    reading = runner.prefill(text)
    first = next(reading)
    cast(Generator[int, None, None], reading).close()
    assert list(runner.tokens) == text[:first]
    fill(runner, text)
    assert list(runner.prefill(text)) == []
    tree = SlotTree(text[-1])
    check(model, text[:-1], tree, runner.forward(tree), runner)
    runner.commit([])


def test_a_text_that_another_one_overwrote_or_that_was_freed_is_read_right(
    pair: tuple[PreTrainedModel, ModelRunner],
) -> None:
    model, runner = pair
    text, other = ([random.Random(seed).randrange(VOCABULARY) for _ in range(30)] for seed in (8, 9))
    tree = SlotTree(text[-1])
    fill(runner, text)
    runner.set_aside(other)
    fill(runner, other)
    runner.take_back()
    for freed in (False, True):
        if freed:
            runner.save_memory()
        assert 0 <= runner.cached_prefix(text) <= len(text)
        fill(runner, text)
        assert list(runner.tokens) == text[:-1]
        check(model, text[:-1], tree, runner.forward(tree), runner)
        runner.commit([])


def test_what_it_cannot_do_is_said_in_a_sentence_and_refused_by_it(pair: tuple[PreTrainedModel, ModelRunner]) -> None:
    runner = pair[1]
    said = runner.capabilities
    fill(runner, [3, 4, 5])
    assert all(why is None or why.endswith(".") for why in (said.single_token, said.logits_only))
    assert 1 <= runner.max_positions <= runner.context_length - 2
    if said.logits_only is None:
        logits, hidden = runner.forward_hidden(SlotTree(5), Want())
        with torch.inference_mode():
            torch.testing.assert_close(hidden.read(hidden.states), logits, atol=TOLERANCE, rtol=TOLERANCE)
        runner.commit([])
    else:
        with pytest.raises(ValueError, match=r"\.$"):
            runner.forward_hidden(SlotTree(5), Want())
