"""The check of a model is made once, and anew when the model is another one than it was."""

import copy
import gc
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook
from transformers import LlamaForCausalLM

from ladechat import lookahead_generate, lookahead_steps
from ladechat.generate.verdicts import runner_for
from ladechat.model.runners.cache_probe import SingleTokenOnly
from tests.generate.requests import PROMPT, generate, handed_on, lookahead
from tests.tiny import new_model, random_model

REQUEST: dict[str, Any] = {"max_new_tokens": 1, "pad_token_id": 0}


class Counting(LlamaForCausalLM):
    """Counts its passes."""

    passes = 0

    def forward(self, *arguments: Any, **given: Any) -> Any:
        type(self).passes += 1
        return super().forward(*arguments, **given)

    @property
    def taken(self) -> int:
        """How many passes there were since this was last read."""
        passes, type(self).passes = type(self).passes, 0
        return passes


def counting() -> Any:
    kind: Any = Counting
    model = kind(copy.deepcopy(random_model(3).config)).eval()
    Counting.passes = 0
    return model


def test_the_second_token_of_a_model_takes_two_passes() -> None:
    model = counting()
    lookahead(model, PROMPT, **REQUEST)
    assert model.taken <= 9
    for _ in range(3):
        generate(model, PROMPT, **REQUEST, custom_generate=lookahead_generate)
        assert model.taken <= 2
    list(lookahead_steps(model, PROMPT, max_new_tokens=1))
    assert model.taken <= 2


def test_a_model_that_cannot_verify_drafts_is_not_checked_again() -> None:
    model = counting()
    model.forward = lambda *arguments, **given: Counting.forward(
        model, *arguments, **{**given, "position_ids": torch.arange(len(given["input_ids"][0]))[None]}
    )
    for checked in (True, False):
        model.taken  # noqa: B018  # counting anew
        with handed_on("so it writes one token a pass"):
            lookahead(model, PROMPT, **REQUEST)
        assert (model.taken > 1) == checked


def own_forward(model: Any) -> None:
    before = model.model.layers[0].mlp.forward
    model.model.layers[0].mlp.forward = lambda *given: before(*given)


def forward_of_the_class(model: Any) -> None:
    kind = type(model.model.layers[0].mlp)
    model.model.layers[0].mlp.__class__ = type("Own", (kind,), {"forward": lambda self, x: kind.forward(self, x)})


def another_attention(model: Any) -> None:
    model.set_attn_implementation("eager")


def another_dtype(model: Any) -> None:
    model.double()


def another_adapter(model: Any) -> None:
    model.model.layers[1].mlp.up_proj._active_adapter = ["other"]


def a_setting_of_a_module(model: Any) -> None:
    model.model.layers[1].self_attn.scaling *= 2


def a_setting_of_the_configuration(model: Any) -> None:
    model.config.rms_norm_eps = 1e-4


def a_hook_of_a_library(model: Any) -> None:
    def hook(*_: object) -> None:
        pass

    hook.__module__ = "accelerate.hooks"
    model.model.norm.register_forward_hook(hook)


def a_hook_of_a_library_in_every_module(_: Any) -> None:
    def hook(*_: object) -> None:
        pass

    hook.__module__ = "accelerate.hooks"
    register_module_forward_hook(hook)


CHANGES: list[Callable[[Any], None]] = [
    own_forward,
    forward_of_the_class,
    another_attention,
    another_dtype,
    another_adapter,
    a_setting_of_a_module,
    a_setting_of_the_configuration,
    a_hook_of_a_library,
    a_hook_of_a_library_in_every_module,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_has_changed_is_checked_anew(
    change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.nn.modules.module._global_forward_hooks", OrderedDict())
    model = counting()
    runner_for(model, 64)
    assert model.taken > 2
    runner_for(model, 64)
    assert model.taken == 0
    change(model)
    runner_for(model, 64)
    assert model.taken > 2


def test_a_model_that_lost_what_the_verdict_says_is_handed_on() -> None:
    model = counting()
    lookahead(model, PROMPT, **REQUEST)
    kind = type(model.model.layers[0].self_attn)

    def without_a_mask(self: Any, *arguments: Any, **given: Any) -> Any:
        return kind.forward(self, *arguments, **{**given, "attention_mask": None})

    for layer in model.model.layers:
        layer.self_attn.__class__ = type("Own", (kind,), {"forward": without_a_mask})
    with pytest.raises(SingleTokenOnly):
        runner_for(model, 64)
    request = {"max_new_tokens": 6, "pad_token_id": 0}
    expected = generate(model, PROMPT, **request)
    with handed_on("so it writes one token a pass"):
        assert torch.equal(lookahead(model, PROMPT, **request), expected)


def test_a_verdict_keeps_no_model_alive() -> None:
    model = new_model(3)
    own_forward(model)
    model.forward = model.forward
    lookahead(model, PROMPT, **REQUEST)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
