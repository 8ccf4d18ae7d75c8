"""A model put together anew in fewer operations: which models are, what that leaves as it was, and its compiler."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from ladechat.decoder.step import Limits
from ladechat.model.runners import llama_body
from ladechat.model.runners.fixed_pass import ModelBody
from ladechat.model.runners.graphs import unrecorded
from ladechat.model.runners.llama_body import LlamaBody
from ladechat.model.runners.recording import choose_body, graph_passes
from ladechat.registry import lookahead
from tests.model.runners.recorded_models import MODELS, model_of, written
from tests.tiny import VOCABULARY, run, runner_for, tokens_of

pytestmark = pytest.mark.usefixtures("small_steps")


def test_which_models_are_put_together_anew() -> None:
    bodies = {name: type(choose_body(runner_for(model_of(name)), model_of(name), compiling=False)) for name in MODELS}
    assert {name for name, body in bodies.items() if body is LlamaBody} == {
        "llama", "llama, tied, biased", "llama, one key head", "qwen2", "qwen3", "mistral",
    }  # fmt: skip


def test_putting_a_model_together_anew_changes_nothing_about_it() -> None:
    model = copy.deepcopy(model_of("qwen2"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.inference_mode():
        LlamaBody(model)
    after = model.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    attention: Any = model.model.layers[0].self_attn
    assert not attention.q_proj.weight.is_inference()
    assert attention.q_proj.weight.untyped_storage().data_ptr() == attention.v_proj.weight.untyped_storage().data_ptr()


def test_a_model_that_computes_something_else_runs_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    model = copy.deepcopy(model_of("llama"))
    layer: Any = model.model.layers[1]
    layer.mlp.act_fn = torch.nn.ReLU()
    runner = runner_for(model)
    assert isinstance(choose_body(runner, model, compiling=False), ModelBody)
    assert "something else" in caplog.text


def test_a_compiler_that_fails_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compiler(_: object) -> Any:
        raise ImportError("no C compiler")

    monkeypatch.setattr(torch, "compile", compiler)
    body = choose_body(runner_for(model_of("llama")), model_of("llama"), compiling=True)
    assert isinstance(body, LlamaBody) and body._before is llama_body.before
    assert "no C compiler" in caplog.text


def test_all_numbers_of_slots_and_all_layers_share_two_compiled_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for a single slot, one for several: nothing is compiled while an answer is written."""
    compiled = Counter[str]()

    def compile_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
        def backend(module: Any, _: object) -> Any:
            compiled[function.__name__] += 1
            return module.forward

        compiling: Callable[..., Any] = compile_with(function, backend=backend)
        return compiling

    torch._dynamo.reset()
    compile_with: Any = torch.compile
    monkeypatch.setattr(torch, "compile", compile_nothing)
    model = model_of("llama", num_hidden_layers=4)
    runner = runner_for(model, context_length=2048)
    runner.graphs = graph_passes(runner, model, compiling=True, record=unrecorded)
    assert compiled == {"before": 2, "between": 2, "last": 2}
    decoder = lookahead(runner)
    tokens: list[int] = []
    prompt = [number % VOCABULARY for number in range(500)]
    for step in decoder.run(prompt, Limits(60)):  # the slab grows on the way
        tokens += step.tokens
        decoder.configure({"window": len(tokens) % 16, "ngram": 5, "guesses": len(tokens) % 13})
    assert tokens == written(model, prompt, 60)
    assert compiled == {"before": 2, "between": 2, "last": 2}
    torch._dynamo.reset()


@pytest.mark.full
def test_a_compiled_pass_computes_what_the_model_does() -> None:
    model = model_of("llama")
    runner = runner_for(model, context_length=2048)
    runner.graphs = graph_passes(runner, model, compiling=True, record=unrecorded)
    steps = run(lookahead(runner, 5, 4, 5), [5, 6, 7], 60)
    assert tokens_of(steps) == written(model, [5, 6, 7], 60)
