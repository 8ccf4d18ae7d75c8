"""Caches whether a model can verify drafts, as long as it lives and does not change: the check takes passes."""

import weakref
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch.nn.modules import module as all_modules
from transformers import PreTrainedModel

from ladechat.model.loading.self_check import logits_runner
from ladechat.model.runners.cache_probe import LayerShape, SingleTokenOnly, UnsupportedModel
from ladechat.model.runners.tree import TreeRunner

PLAIN = (bool, int, float, str, type(None))


class Verdict(NamedTuple):
    """The result of the check of a model.

    Attributes:
        looks: the features of the model when it was checked, see `looks_of`.
        layers: the shapes of its KV cache, if it can verify drafts.
        refusal: the type and the text of the error, if it cannot.
    """

    looks: object
    layers: list[LayerShape]
    refusal: tuple[type[SingleTokenOnly] | type[UnsupportedModel], str] | None


_verdicts: WeakKeyDictionary[PreTrainedModel, Verdict] = WeakKeyDictionary()


def runner_for(model: PreTrainedModel, context_length: int) -> TreeRunner:
    """Return a runner with an empty cache for a model that can verify drafts. Check the model if it is new or changed.

    Args:
        model: a model in evaluation mode, on its device.
        context_length: the number of positions that it may use.

    Raises:
        SingleTokenOnly: it cannot verify drafts; the message says why.
        UnsupportedModel: it cannot be decoded at all.
    """
    looks, verdict = looks_of(model), _verdicts.get(model)
    if verdict is None or verdict.looks != looks:
        try:
            runner = logits_runner(model, context_length)
        except (SingleTokenOnly, UnsupportedModel) as error:
            _verdicts[model] = Verdict(looks, [], (type(error), str(error)))
            raise
        _verdicts[model] = Verdict(looks, list(runner.layer_shapes), None)
        return runner
    if verdict.refusal is not None:
        kind, sentence = verdict.refusal
        raise kind(sentence)
    return TreeRunner(model, context_length, layers=verdict.layers)


def looks_of(model: PreTrainedModel) -> object:
    """Return the features that the check may depend on, except the values of weights. Comparable; references nothing.

    Types, forward functions, hooks and plain settings (such as the active adapters) of all modules; types and devices
    of all weights; the configuration, and the attention implementation it selected.
    """
    weights = [*model.parameters(), *model.buffers()]
    return (
        [_looks_of_a_module(module) for module in model.modules()],
        [[_reference(hook) for hook in hooks] for hooks in hooks_of(model)],
        {(type(weight), weight.dtype, weight.device) for weight in weights},
        model.config.to_dict(),
        [model.config._attn_implementation, model.config.get_text_config(decoder=True)._attn_implementation],
    )


def hooks_of(model: torch.nn.Module) -> list[list[Any]]:
    """Return the hooks around forward functions: those of torch for all modules, then those of each module."""
    everywhere = [*all_modules._global_forward_hooks.values(), *all_modules._global_forward_pre_hooks.values()]
    own = ([*one._forward_hooks.values(), *one._forward_pre_hooks.values()] for one in model.modules())
    return [everywhere, *own]


def _looks_of_a_module(module: Any) -> object:
    own = vars(module)
    return (
        type(module),
        type(module).forward,
        _reference(own.get("forward")),
        {name: _copied(value) for name, value in own.items() if isinstance(value, (*PLAIN, list, set, tuple))},
    )


def _copied(value: Any) -> object:
    """Return a plain setting, or the plain items of a collection."""
    if isinstance(value, PLAIN):
        return value
    return [one for one in value if isinstance(one, PLAIN)]


def _reference(function: Any) -> object:
    """Return a value that is equal only for the same living function, without keeping that alive."""
    if function is None:
        return None
    try:
        return weakref.ref(function)
    except TypeError:
        return id(function)
