"""Requests that go to the model's own decoding loop, the one that `generate` runs: which ones, and why.

There the text is that of `generate` by construction, and nothing is gained. So whatever cannot be shown to be the same
under lookahead decoding goes there, with a warning.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from transformers import (
    EosTokenCriteria,
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    MaxLengthCriteria,
    PreTrainedModel,
    StoppingCriteriaList,
    StopStringCriteria,
)
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ladechat.generate.preparation import at_usual_positions, prepares_as_usual
from ladechat.generate.request import longest_text
from ladechat.model.runners.rope import rope_boundary

ABOUT_ALL_ROWS = {
    "ClassifierFreeGuidanceLogitsProcessor",
    "DiaClassifierFreeGuidanceLogitsProcessor",
    "EncoderNoRepeatNGramLogitsProcessor",
    "EncoderRepetitionPenaltyLogitsProcessor",
    "PrefixConstrainedLogitsProcessor",
    "SynthIDTextWatermarkLogitsProcessor",
    "UnbatchedClassifierFreeGuidanceLogitsProcessor",
}
"""Processors of transformers that number rows, or keep something of all of them together."""

ROW_BY_ROW_CRITERIA = (MaxLengthCriteria, EosTokenCriteria, StopStringCriteria)
"""Criteria that look at one row at a time and keep no state."""

USUAL = ("attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep")
"""What `generate` hands to a decoding loop for a model that is given a text and nothing else."""


def why_own_loop(
    model: PreTrainedModel,
    input_ids: Tensor,
    processors: Iterable[object],
    criteria: Iterable[object],
    config: GenerationConfig,
    model_kwargs: dict[str, Any],
) -> str | None:
    """Why this request goes to the model's own loop, as a clause; None if lookahead decoding can write it.

    The model is not run for this.
    """
    reason = _about_the_model(model) or _about_the_request(config, model_kwargs)
    if reason is None and len(input_ids) > 1:
        reason = _about_all_rows(processors, list(criteria))
    return reason or _about_positions(model, input_ids, longest_text(config, criteria, input_ids), model_kwargs)


def run_own_loop(
    model: PreTrainedModel,
    input_ids: Tensor,
    processors: LogitsProcessorList,
    criteria: StoppingCriteriaList,
    config: GenerationConfig,
    streamer: BaseStreamer | None,
    model_kwargs: dict[str, Any],
) -> Tensor | GenerateDecoderOnlyOutput:
    """What `generate` itself would call with what it has prepared."""
    kind: Any = type(model)
    loop = kind._beam_search if config.num_beams > 1 else kind._sample  # nothing public takes what is prepared
    if streamer is not None:
        streamer.put(input_ids.cpu())
        model_kwargs = {**model_kwargs, "streamer": streamer}
    result: Tensor | GenerateDecoderOnlyOutput = loop(
        model, input_ids, processors, criteria, generation_config=config, **model_kwargs
    )
    return result


def _about_the_model(model: PreTrainedModel) -> str | None:
    kind: Any = type(model)
    if kind._sample is not GenerationMixin._sample:
        return f"{type(model).__name__} has a decoding loop of its own"
    if getattr(model, "_is_stateful", False):
        return f"{type(model).__name__} carries a state from token to token, in which a draft cannot be undone"
    places = set((getattr(model, "hf_device_map", None) or {}).values())
    if len(places) > 1 or model.device.type == "meta":
        return "parts of the model are on several devices, or are fetched for each pass"
    if any(_is_foreign(hook) for module in model.modules() for hook in _hooks_of(module)):
        return "the model has hooks, which may do something else where a pass has several tokens"
    return None


def _hooks_of(module: torch.nn.Module) -> list[Any]:
    return [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]


def _is_foreign(hook: Any) -> bool:
    return not str(getattr(hook, "__module__", "")).startswith(("transformers.", "torch.", "accelerate.", "torchao."))


def _about_the_request(config: GenerationConfig, model_kwargs: dict[str, Any]) -> str | None:
    if config.use_cache is False:
        return "use_cache=False has each pass read the whole text, and drafts need a KV cache"
    if config.cache_implementation == "quantized":
        return "a quantised KV cache rounds by what is in it"
    others = [name for name, value in model_kwargs.items() if name not in USUAL and value is not None]
    return f"the model is given {others[0]} besides the text" if others else None


def _about_all_rows(processors: Iterable[object], criteria: list[object]) -> str | None:
    for processor in processors:
        kind = type(processor)
        if kind.__module__ != "transformers.generation.logits_process" or kind.__name__ in ABOUT_ALL_ROWS:
            return f"{kind.__name__} may look at all rows at once"
    ends = any(type(criterion) is EosTokenCriteria for criterion in criteria)
    for criterion in criteria:
        kind = type(criterion)
        if kind not in ROW_BY_ROW_CRITERIA:
            return f"{kind.__name__} may look at all rows at once"
        if kind is StopStringCriteria and not ends:
            return "without an eos_token_id rows that have ended are written on until all have"
    return None


def _about_positions(
    model: PreTrainedModel, input_ids: Tensor, longest: int, model_kwargs: dict[str, Any]
) -> str | None:
    """Of texts of up to `longest` tokens, of which no pass reads the last one."""
    mask, positions = model_kwargs.get("attention_mask"), model_kwargs.get("position_ids")
    mask = torch.ones_like(input_ids) if mask is None else mask
    padded = not bool(mask.all())
    if positions is None and padded:
        return f"{type(model).__name__} counts the positions of a row from its padding on"
    if positions is not None and not at_usual_positions(positions, mask):
        return "positions are not counted from 0 on in each row"
    boundary = rope_boundary(model.config.get_text_config(decoder=True))
    if boundary is not None and longest - 1 > boundary.length:
        if boundary.kind == "dynamic":
            return f"the rotary angles change with every token beyond {boundary.length}"
        if padded:
            return f"beyond {boundary.length} tokens the longest row changes the rotary angles of all"
    if not prepares_as_usual(model, input_ids, mask, positions, longest):
        return f"{type(model).__name__} prepares the inputs of a pass in its own way"
    return None
