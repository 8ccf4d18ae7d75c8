"""Decides which requests go to the model's own decoding loop, the one that `generate` runs, and says why.

There the text equals that of `generate` by construction, but it is no faster. So every request whose text is not sure
to be the same under lookahead decoding goes there, with a warning.
"""

import inspect
from typing import Any

import torch
from transformers import EosTokenCriteria, GenerationMixin, MaxLengthCriteria, PreTrainedModel
from transformers.generation import logits_process as process
from transformers.generation.configuration_utils import GenerationMode
from transformers.generation.utils import GENERATION_MODES_MAPPING

from ladechat.generate.preparation import at_usual_positions, prepares_as_usual
from ladechat.generate.request import Request
from ladechat.generate.room import why_no_room
from ladechat.generate.verdicts import hooks_of
from ladechat.model.runners.kv_cache import CACHE
from ladechat.model.runners.rope import rope_boundary

USUAL = ("attention_mask", "position_ids", CACHE, "use_cache", "logits_to_keep")
"""The keyword arguments that `generate` passes to a decoding loop for a model that gets only a text."""

ASSISTANTS = ("prompt_lookup_num_tokens", "use_mtp", "assistant_early_exit")
"""Options with which `generate` itself drafts."""

STATELESS = {
    *(process.RepetitionPenaltyLogitsProcessor, process.NoRepeatNGramLogitsProcessor),
    *(process.NoBadWordsLogitsProcessor, process.SequenceBiasLogitsProcessor),
    *(process.EncoderRepetitionPenaltyLogitsProcessor, process.EncoderNoRepeatNGramLogitsProcessor),
    *(process.MinLengthLogitsProcessor, process.MinNewTokensLengthLogitsProcessor),
    *(process.ExponentialDecayLengthPenalty, process.ForcedBOSTokenLogitsProcessor),
    *(process.ForcedEOSTokenLogitsProcessor, process.WatermarkLogitsProcessor, process.SuppressTokensLogitsProcessor),
    *(process.SuppressTokensAtBeginLogitsProcessor, process.InfNanRemoveLogitsProcessor, process.LogitNormalization),
    *(process.TemperatureLogitsWarper, process.TopKLogitsWarper, process.TopPLogitsWarper),
}
"""Processors that depend only on the text and its logits. Others, such as those of classifier-free guidance and of
SynthID, keep a state or may keep one, which rejected drafts would change.
"""


def why_own_loop(request: Request) -> str | None:
    """Return why this request goes to the model's own loop, as a clause; None if lookahead decoding can serve it.

    The model is not run for this.
    """
    return (
        about_the_model(request.model, request.given.synced_gpus)
        or _about_the_request(request)
        or _about_assistance(request)
        or about_the_text(request)
    )


def run_own_loop(request: Request) -> Any:
    """Return the result of the loop that `generate` itself would call with the arguments it has prepared."""
    loop: Any = getattr(type(request.model), GENERATION_MODES_MAPPING[request.mode])  # nothing public takes all of this
    options: dict[str, Any] = {"synced_gpus": _synced(request.model, request.given.synced_gpus)}
    if request.streamer is not None:
        options["streamer"] = request.streamer
    if request.mode is GenerationMode.ASSISTED_GENERATION:
        tensor = request.input_ids if request.given.inputs_tensor is None else request.given.inputs_tensor
        options |= {**request.given._asdict(), "inputs_tensor": tensor, **options}
        options = {name: options[name] for name in inspect.signature(loop).parameters if name in options}
    request.greet()
    return loop(
        request.model,
        request.input_ids,
        request.processors,
        request.criteria,
        generation_config=request.config,
        **options,
        **request.model_kwargs,
    )


def about_the_model(model: PreTrainedModel, synced_gpus: bool | None = None) -> str | None:
    """Return why lookahead decoding cannot serve this model at all, as a clause; None if it can."""
    kind: Any = type(model)
    if model.config.is_encoder_decoder:
        return f"{kind.__name__} is an encoder-decoder model"
    if kind._sample is not GenerationMixin._sample:
        return f"{kind.__name__} has a decoding loop of its own"
    if synced_gpus or _synced(model, None):
        return "ranks that share the model (FSDP, ZeRO) have to run the same number of passes"
    if model.training:
        return "the model is in training mode, in which its passes are random (model.eval() ends that)"
    places = set((getattr(model, "hf_device_map", None) or {}).values())
    if len(places) > 1 or model.device.type == "meta":
        return "parts of the model are on several devices, or are fetched for each pass"
    return None


def about_the_text(request: Request) -> str | None:
    """Return why lookahead decoding cannot serve a text without further inputs, as a clause; None if it can."""
    if any(_is_foreign(hook) for hooks in hooks_of(request.model) for hook in hooks):
        return "the model has hooks, which may do something else where a pass has several tokens"
    return _about_positions(request, request.longest) or why_no_room(
        request.model, request.input_ids.shape[1], request.longest, request.settings
    )


def _synced(model: PreTrainedModel, synced_gpus: bool | None) -> bool:
    """Return whether ranks continue until the last of them has ended, as `generate` decides it."""
    found: Any = model._extract_generation_mode_kwargs(None, {}, synced_gpus, None, None)  # type: ignore[operator]
    return bool(found["synced_gpus"])


def _is_foreign(hook: Any) -> bool:
    return not str(getattr(hook, "__module__", "")).startswith(("transformers.", "torch.", "accelerate.", "torchao."))


def _about_the_request(request: Request) -> str | None:
    config, given = request.config, request.model_kwargs
    if config.num_beams > 1:
        return "beam search writes several texts side by side"
    if len(request.input_ids) > 1:
        return "several rows take fewer passes together than one after another"
    if getattr(request.model, "_is_stateful", False):
        kind = type(request.model).__name__
        return f"{kind} carries a state from token to token, in which a draft cannot be undone"
    if config.use_cache is False:
        return "use_cache=False has each pass read the whole text, and drafts need a KV cache"
    if config.cache_implementation == "quantized":
        return "a quantised KV cache rounds by what is in it"
    cache = given.get(CACHE)
    if cache is not None and (cache.get_seq_length() or getattr(cache, "_is_user_defined", False)):
        return f"{CACHE} is given, and lookahead decoding has a KV cache of its own"
    for option in ("output_attentions", "output_hidden_states"):
        if getattr(config, option, False):
            return f"{option} asks for what was computed in each pass, and drafts would be among it"
    others = [name for name, value in given.items() if name not in USUAL and not _is_nothing(value)]
    return f"the model is given {others[0]} besides the text" if others else None


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, dict) and not value)


def _about_assistance(request: Request) -> str | None:
    """Return why `generate`, when it drafts by itself, may write another text than without drafts; None if never."""
    config = request.config
    names = [name for name in ASSISTANTS if getattr(config, name, None)]
    names += ["assistant_model"] if request.given.assistant_model is not None else []
    if not names:
        return None
    why = None
    if config.do_sample:
        why = "draws other random numbers"
    elif getattr(config, "assistant_ensemble_weight", None) is not None:
        why = "mixes the assistant's choice into the model's"
    elif any(type(one) not in (MaxLengthCriteria, EosTokenCriteria) for one in request.criteria):
        why = "asks stopping criteria once a pass, not once a token"
    elif any(type(one) not in STATELESS for one in request.processors):
        why = "shows rejected drafts to processors"
    return why and f"with {names[0]} generate {why}"


def _about_positions(request: Request, longest: int) -> str | None:
    """Return what is unusual about the positions of a text of up to `longest` tokens. No pass reads the last token."""
    model, input_ids = request.model, request.input_ids
    mask, positions = request.model_kwargs.get("attention_mask"), request.model_kwargs.get("position_ids")
    mask = torch.ones_like(input_ids) if mask is None else mask
    if not input_ids.shape[1] or mask.shape != input_ids.shape:
        return "the text is empty, or its attention mask has another shape"
    if not bool(mask.all()):
        return "the attention mask has zeros, and what a model makes of padding is its own affair"
    if positions is not None and not at_usual_positions(positions):
        return "positions are not counted from 0 on"
    boundary = rope_boundary(model.config.get_text_config(decoder=True))
    if boundary is not None and longest - 1 > boundary.length:
        if boundary.recomputes and input_ids.shape[1] <= boundary.length:
            return f"where a text of this model outgrows {boundary.length} tokens, generate forgets it"
        if boundary.kind == "dynamic":
            return f"the rotary angles change with every token beyond {boundary.length}"
    if not prepares_as_usual(model, input_ids, positions, longest):
        return f"{type(model).__name__} prepares the inputs of a pass in its own way"
    return None
