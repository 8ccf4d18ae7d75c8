"""The pass in few kernels: what the model itself computes. Triton interprets the kernels, so that no GPU is needed."""

import random
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from ladechat.decoder.hidden import TransferMaps, Want
from ladechat.decoder.loop import Decoder
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.fixed_pass import FixedPass, Inputs
from ladechat.model.runners.graphs import GraphPasses, agrees, unrecorded
from ladechat.model.runners.logits import fill
from ladechat.model.runners.slots import Slots
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead
from tests.model.runners.recorded_models import model_of, written
from tests.model.runners.trees import close, random_tree
from tests.tiny import VOCABULARY, layered_runner_for, run, runner_for, tokens_of

pytest.importorskip("triton", reason="Triton is there on Linux only")

SHAPES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, tied, one key head": {"tie_word_embeddings": True, "num_key_value_heads": 1},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3"},
}
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def _loops_with_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the interpreter take an array of one number for a loop's bound, which numpy 2.4 no longer does."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def with_bounds(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", with_bounds)


def few_kernels(model: PreTrainedModel) -> Any:
    from ladechat.model.runners.llama_pass import LlamaPass

    return LlamaPass(model)


def with_random_norms(model: PreTrainedModel) -> PreTrainedModel:
    """New models have norms and biases that change nothing."""
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=dice), alpha=0.3)
    return model


@pytest.mark.parametrize("own_products", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_logits_states_keys_and_values_are_the_models(
    shape: str, own_products: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees of several sizes, behind few cached tokens and behind more than are read at once."""
    if own_products:
        monkeypatch.setattr("ladechat.model.runners.cuda_products.has_own_product", lambda x: len(x) <= 64)
    dice = random.Random(shape)
    model = with_random_norms(model_of("llama", **SHAPES[shape]))
    text = [dice.randrange(VOCABULARY) for _ in range(150)]
    compute, runner = few_kernels(model), layered_runner_for(model, context_length=2048)
    for cached, tree in ((1, SlotTree.chain([5])), (70, SlotTree.chain([6])), (149, random_tree(dice, VOCABULARY))):
        fill(runner, text[: cached + 1])
        own, hidden = runner.forward_hidden(tree, Want())
        after = runner.cache.length + len(tree)
        rows = [row.clone() for row in runner.cache.all_rows(after)]
        runner.cache.wipe()
        inputs = Inputs(len(tree), model.device)
        inputs.fill(Slots.of_tree(tree), cached)
        logits, states = compute(inputs.of(len(tree)), runner.cache.all_rows(runner.cache.capacity))
        torch.testing.assert_close(logits, own, atol=TOLERANCE, rtol=TOLERANCE)
        torch.testing.assert_close(states, hidden.states, atol=TOLERANCE, rtol=TOLERANCE)
        for mine, theirs in zip(runner.cache.all_rows(after), rows, strict=True):
            torch.testing.assert_close(mine, theirs, atol=TOLERANCE, rtol=TOLERANCE)
        runner.commit([])


@pytest.mark.parametrize(("rows", "inner", "columns", "parts"), [(1, 128, 64, 1), (7, 1000, 70, 2), (64, 512, 128, 4)])
def test_a_product_is_torchs(rows: int, inner: int, columns: int, parts: int) -> None:
    """Whole tiles and broken ones, whole sums and sums in parts."""
    from ladechat.model.runners.cuda_products import product

    dice = torch.Generator().manual_seed(rows)
    x, weight = torch.randn(rows, inner, generator=dice), torch.randn(columns, inner, generator=dice)
    bias = torch.randn(columns, generator=dice)
    expected = torch.nn.functional.linear(x, weight)
    made = product(x, weight, parts=parts)
    torch.testing.assert_close(made if parts == 1 else made.sum(0), expected, atol=1e-3, rtol=TOLERANCE)
    torch.testing.assert_close(product(x, weight, bias), expected + bias, atol=1e-3, rtol=TOLERANCE)


@pytest.mark.parametrize(("columns", "parts"), [(64 * 133, 1), (64 * 66, 2), (64 * 33, 4), (64, 4)])
def test_a_product_of_few_columns_is_cut(columns: int, parts: int) -> None:
    from ladechat.model.runners.cuda_products import parts_of_product

    assert parts_of_product(columns, cores=132) == parts


def test_the_best_of_a_large_vocabulary_and_of_equal_logits() -> None:
    from ladechat.model.runners.cuda_products import best as best_of
    from ladechat.model.runners.logits import best

    logits = torch.randn(3, 9000, generator=torch.Generator().manual_seed(2))
    logits[1, 8999] = 20.0
    logits[2, [4000, 5000]] = 20.0
    found = best_of(logits)
    assert found[0].tolist() == [logits[0].argmax(), 8999, 4000]
    torch.testing.assert_close(found, best(logits))


def recorded_in_few_kernels(model: PreTrainedModel, runner: TreeRunner) -> GraphPasses:
    return GraphPasses(few_kernels(model), runner.cache, VOCABULARY, model.config.hidden_size, model.dtype, unrecorded)


def test_texts_are_those_of_plain_decoding() -> None:
    """Through recordings, which for these passes serve all lengths of the text: one of each size."""
    model = with_random_norms(model_of("llama"))
    prompt = [random.Random(0).randrange(3, VOCABULARY) for _ in range(20)]
    expected = written(model, prompt, 10)
    for decoder in (Decoder, lambda runner: lookahead(runner, 3, 3, 3)):
        runner = runner_for(model, context_length=2048)
        runner.graphs = recorded_in_few_kernels(model, runner)
        assert tokens_of(run(decoder(runner), prompt, 10)) == expected
        made = [one.slots for one in runner.graphs.history]
        assert made and len(made) == len(set(made))


def test_a_recorded_pass_tells_argmax_and_hidden_states() -> None:
    model = with_random_norms(model_of("llama"))
    runner, theirs = (layered_runner_for(model, context_length=2048) for _ in range(2))
    runner.graphs = recorded_in_few_kernels(model, runner)
    tree = SlotTree.chain([5, 6, 7])
    for one in (runner, theirs):
        fill(one, [3, 4, 5])
    for _ in range(2):
        runner.forward(tree)
        runner.commit([])
    logits, hidden = runner.forward_hidden(tree, Want())
    expected, own = theirs.forward_hidden(tree, Want())
    assert runner.graphs.argmax(logits) is not None
    tokens, logprobs = runner.argmax(logits)
    assert tokens == expected.argmax(-1).tolist()
    assert logprobs == pytest.approx(expected.log_softmax(-1).amax(-1).tolist(), abs=TOLERANCE)
    torch.testing.assert_close(hidden.states, own.states, atol=TOLERANCE, rtol=TOLERANCE)
    torch.testing.assert_close(hidden.read(hidden.states), expected, atol=TOLERANCE, rtol=TOLERANCE)
    assert runner.graphs.argmax(expected) is None, "these are not its logits"


@pytest.mark.parametrize("overflow", [False, True])
def test_pseudo_rows_and_slots_of_a_recorded_pass_are_the_models(overflow: bool) -> None:
    """Also of rows that overflow, which slots do not notice."""
    model = with_random_norms(model_of("llama", num_hidden_layers=2))
    runner, theirs = (layered_runner_for(model, context_length=2048) for _ in range(2))
    runner.graphs = recorded_in_few_kernels(model, runner)
    for one in (runner, theirs):
        fill(one, [3, 4, 5, 6])
    weights = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0)) * 0.2
    weights[0] = torch.inf if overflow else weights[0]
    maps, tree = TransferMaps((0, 1, 1), weights), SlotTree(7)
    tree.add(tree.add(0, 8), 9)
    tree.add(0, 10)
    for carriers, path in (([0, 1, 2, 3], [0, 1]), ([3], [0, 1, 2])):
        want = Want(maps, carriers)
        for _ in range(2):
            runner.forward_hidden(tree, want)
            runner.commit([])
        (logits, hidden), (expected, usual) = (one.forward_hidden(tree, want) for one in (runner, theirs))
        assert runner.graphs.argmax(logits) is not None, "it was recorded"
        torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=TOLERANCE)
        torch.testing.assert_close(hidden.states, usual.states, atol=TOLERANCE, rtol=TOLERANCE)
        assert hidden.pseudo is not None and usual.pseudo is not None and hidden.pseudo.isfinite().all()
        if not overflow:
            torch.testing.assert_close(hidden.pseudo, usual.pseudo, atol=TOLERANCE, rtol=TOLERANCE)
        for one in (runner, theirs):
            one.commit(path)
    assert [one.slots for one in runner.graphs.history] == [16, 8]


def test_a_draft_of_some_layers_is_recorded_and_the_same() -> None:
    model = with_random_norms(model_of("llama", num_hidden_layers=3))
    runner, theirs = (layered_runner_for(model, context_length=2048) for _ in range(2))
    runner.graphs = recorded_in_few_kernels(model, runner)
    for one in (runner, theirs):
        fill(one, [3, 4, 5, 6])
    for skipped in ({1}, {0, 2}):
        for _ in range(2):
            drafted, expected = (one.draft(7, skipped, 4, 0.0) for one in (runner, theirs))
            assert [one.token for one in drafted] == [one.token for one in expected]
            probabilities = [one.probability for one in expected]
            assert [one.probability for one in drafted] == pytest.approx(probabilities, abs=TOLERANCE)
            assert close(*(one.forward(SlotTree.chain([7, 8])) for one in (runner, theirs)))
            for one in (runner, theirs):
                one.commit([0])
    assert [one.slots for one in runner.graphs.history].count(1) == 2, "one for each set of layers"


def test_the_model_computes_what_it_did_and_its_weights_are_there_once() -> None:
    model = model_of("qwen2")
    ids = torch.tensor([[5, 6, 7, 8]])
    before = model(ids).logits
    few_kernels(model)
    attention = model.get_decoder().layers[1].self_attn
    places = [one.weight.data_ptr() for one in (attention.q_proj, attention.k_proj, attention.v_proj)]
    few_kernels(model)
    assert places == [one.weight.data_ptr() for one in (attention.q_proj, attention.k_proj, attention.v_proj)]
    assert attention.q_proj.weight.untyped_storage().data_ptr() == attention.v_proj.weight.untyped_storage().data_ptr()
    torch.testing.assert_close(model(ids).logits, before)


@pytest.mark.parametrize("name", ["gpt2", "hybrid", "llama, tied, biased"])
def test_models_of_another_form_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"has |another type"):
        few_kernels(model_of(name))


def test_a_pass_that_computes_something_else_is_noticed() -> None:
    """As it would be of a model of this form that scales or adds somewhere."""
    model = with_random_norms(model_of("llama"))
    runner = runner_for(model, context_length=2048)
    assert agrees(few_kernels(model), runner, model, runner.cache)
    assert agrees(FixedPass(model, runner.windows), runner, model, runner.cache)
    for layer in model.get_decoder().layers:
        layer.self_attn.scaling *= 2
    compute = few_kernels(model)
    for layer in model.get_decoder().layers:
        layer.self_attn.scaling /= 2
    assert not agrees(compute, runner, model, runner.cache)
    assert not runner.tokens
