"""Whether a model can verify drafts, remembered for as long as it lives and stays as it is: the check takes passes."""

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
    """What the check of a model said.

    Attributes:
        looks: of the model when it was checked.
        layers: what it caches, if it can verify drafts.
        refusal: the kind and the text of the error, if it cannot.
    """

    looks: object
    layers: list[LayerShape]
    refusal: tuple[type[SingleTokenOnly] | type[UnsupportedModel], str] | None


_verdicts: WeakKeyDictionary[PreTrainedModel, Verdict] = WeakKeyDictionary()


def runner_for(model: PreTrainedModel, context_length: int) -> TreeRunner:
    """A runner with an empty cache, for a model that can verify drafts: checked if it is new or looks otherwise.

    Args:
        model: in evaluation mode, on its device.
        context_length: the number of positions it may use.

    Raises:
        SingleTokenOnly: it cannot verify drafts, and why.
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
    """What the check of a model may depend on, but for the values of its weights. Comparable, and no owner of anything.

    Types, forward functions, hooks and plain settings (which adapters are active is one) of all modules; types and
    places of all weights; the configuration, and which attention it chose.
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
    """What a pass calls before and after forward functions: those of torch for all modules, then each module's."""
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
    """A setting that is plain, or a flat collection of such; else nothing."""
    if isinstance(value, PLAIN):
        return value
    return [one for one in value if isinstance(one, PLAIN)]


def _reference(function: Any) -> object:
    """Something equal only for the same function as long as that lives: what a model has must not keep it alive."""
    if function is None:
        return None
    try:
        return weakref.ref(function)
    except TypeError:
        return id(function)
