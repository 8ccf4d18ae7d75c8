"""Lookahead decoding in your own code, with or without transformers' `generate`. See docs/in-your-own-code.md."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
    StopStringCriteria,
)
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import GenerateOutput

from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import GREEDY, Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.generate.callers import given_to_generate, warn_at_callers_line
from ladechat.generate.fallback import about_the_model, about_the_text, run_own_loop, why_own_loop
from ladechat.generate.request import DecodingSettings, Request, check_count, refuse_unknown_ids
from ladechat.generate.room import positions_for, why_no_room
from ladechat.generate.row import decode, decoder_of
from ladechat.generate.verdicts import runner_for
from ladechat.model.loading.self_check import check_one_direction
from ladechat.model.runners.cache_probe import SingleTokenOnly, UnsupportedModel
from ladechat.model.runners.single_token import SingleTokenRunner

WINDOW, NGRAM, GUESSES = 5, 3, 5
NO_STEPS = "There are no steps to show: {}. lookahead_generate writes such a text by transformers' own loop."


def lookahead_generate(
    model: PreTrainedModel,
    input_ids: Tensor | None = None,
    logits_processor: LogitsProcessorList | None = None,
    stopping_criteria: StoppingCriteriaList | None = None,
    generation_config: GenerationConfig | None = None,
    *,
    window: int = WINDOW,
    ngram: int = NGRAM,
    guesses: int = GUESSES,
    streamer: BaseStreamer | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    stop_strings: str | list[str] | None = None,
    **kwargs: Any,
) -> Tensor | GenerateOutput:
    """Generate the same text as `model.generate`, in fewer forward passes.

    Pass this to `generate` as `custom_generate`, or call it like `generate`. Requests whose text is not sure to be the
    same, or which would take longer (several rows), go to `generate`'s own loop, with a warning that says why.

    Args:
        model: any model that generates; decoder-only models in evaluation mode are faster.
        input_ids: (B, n) int64; `inputs` is another name for it, as in `generate`.
        logits_processor: as for `generate`.
        stopping_criteria: as for `generate`.
        generation_config: as for `generate`.
        window: W of lookahead decoding (Fu et al. 2024, arXiv 2402.02057): columns of the Jacobi window; 0: no window.
        ngram: N, the tokens of an n-gram.
        guesses: G, the maximum number of n-grams verified in one step.
        streamer: receives the prompt, then token by token.
        tokenizer: the tokenizer that `stop_strings` are matched with.
        stop_strings: strings that end the text.
        kwargs: any other arguments of `generate`, such as max_new_tokens, do_sample, temperature, attention_mask.

    Returns:
        As `generate`: (B, n + new) int64, or a `GenerateDecoderOnlyOutput` with `return_dict_in_generate`.

    Raises:
        ValueError: window, ngram or guesses out of range, a token id without an embedding, or a mode that `generate`
            has no loop for, such as contrastive search. Otherwise as `generate`.
    """
    settings = DecodingSettings(window, ngram, guesses)
    settings.check()
    if "inputs" in kwargs:  # the name that `generate` uses
        if input_ids is not None:
            raise ValueError("The text is given twice, as input_ids and as inputs; leave one out.")
        input_ids = kwargs.pop("inputs")
    if _prepared(generation_config) and input_ids is not None:
        given = given_to_generate(generation_config)
        criteria = StoppingCriteriaList(stopping_criteria or [])
        if stop_strings is not None:
            criteria.append(_at_strings(stop_strings, tokenizer or given.tokenizer))
        if streamer is not None and given.streamer is not None and streamer is not given.streamer:
            raise ValueError("Two streamers are given, one to generate and one to lookahead_generate; leave one out.")
        request = Request(
            model,
            input_ids,
            logits_processor or LogitsProcessorList(),
            criteria,
            generation_config,
            settings,
            streamer or given.streamer,
            given.streamer is not None,
            given,
            kwargs,
        )
        return _carry_out(request)

    configured = _configured_stop_strings(model, generation_config)
    if configured is not None:
        kwargs["stop_strings"] = None  # generate would require their tokenizer, and not pass it on
    own: dict[str, Any] = {"window": window, "ngram": ngram, "guesses": guesses, "streamer": streamer}
    own |= {"tokenizer": tokenizer, "stop_strings": configured if stop_strings is None else stop_strings}

    def loop(model: PreTrainedModel, input_ids: Tensor, **prepared: Any) -> Tensor | GenerateOutput:
        return lookahead_generate(model, input_ids, **own, **prepared)

    result: Tensor | GenerateOutput = model.generate(  # type: ignore[operator]  # a mixin's, unseen by mypy
        input_ids,
        generation_config=generation_config,
        logits_processor=logits_processor,
        stopping_criteria=stopping_criteria,
        custom_generate=loop,
        tokenizer=tokenizer,
        **kwargs,
    )
    return result


def _carry_out(request: Request) -> Tensor | GenerateOutput:
    """Serve the request: by lookahead decoding, or by the model's own loop, with a warning that says why."""
    request.refuse()
    reason = why_own_loop(request)
    if reason is None:
        refuse_unknown_ids(request.model, request.input_ids)
        positions = positions_for(request.model, request.longest, request.settings)
        try:
            result = decode(request, runner_for(request.model, positions))
        except (SingleTokenOnly, UnsupportedModel) as error:
            reason = str(error).removesuffix(".")
        else:
            if result is not None:
                return result
            reason = "the model's logits are not numbers"
    warn_at_callers_line(f"Decoded by transformers' own loop, without a gain: {reason}.")
    written: Tensor | GenerateOutput = run_own_loop(request)
    return written


def lookahead_steps(
    model: PreTrainedModel,
    input_ids: Tensor,
    *,
    max_new_tokens: int,
    eos_token_id: int | Sequence[int] | None = None,
    window: int = WINDOW,
    ngram: int = NGRAM,
    guesses: int = GUESSES,
    sampling: Sampling = GREEDY,
) -> Iterator[Step]:
    """Return the steps of lookahead decoding, one forward pass each, with the draft, accepted tokens, window and pool.

    Args:
        model: decoder-only, in evaluation mode.
        input_ids: (1, n) int64.
        max_new_tokens: the maximum number of new tokens.
        eos_token_id: the tokens that end the text; None: the model's own.
        window: see `lookahead_generate`.
        ngram: see `lookahead_generate`.
        guesses: see `lookahead_generate`.
        sampling: how tokens are sampled.

    Raises:
        ValueError: as `lookahead_generate`, or where that would use the model's own loop; also as `UnsupportedModel`.
    """
    settings = DecodingSettings(window, ngram, guesses)
    settings.check()
    check_count("max_new_tokens", max_new_tokens, 1)
    if input_ids.dim() != 2 or len(input_ids) != 1 or not input_ids.shape[1]:
        raise ValueError(f"lookahead_steps takes one row at a time, (1, n), and not {tuple(input_ids.shape)}.")
    request = _plain_request(model, input_ids, max_new_tokens, settings)
    room = why_no_room(model, input_ids.shape[1], request.longest, settings)
    if (reason := about_the_model(model) or room) is not None:
        raise ValueError(NO_STEPS.format(reason))
    refuse_unknown_ids(model, input_ids)
    positions = positions_for(model, request.longest, settings)
    try:
        decoder = decoder_of(runner_for(model, positions), settings)
    except SingleTokenOnly as error:
        check_one_direction(model)
        warn_at_callers_line(f"Plain decoding: {error}")
        decoder = Decoder(SingleTokenRunner(model, positions, str(error)))
    else:
        if (reason := about_the_text(request)) is not None:
            raise ValueError(NO_STEPS.format(reason))
    ends = model.generation_config.eos_token_id if eos_token_id is None else eos_token_id
    eos_ids = frozenset() if ends is None else frozenset([ends] if isinstance(ends, int) else ends)
    prompt = input_ids[0].tolist()
    return decoder.run(prompt, Limits(max_new_tokens, eos_ids), Sampler(prompt, sampling))


def _plain_request(
    model: PreTrainedModel, input_ids: Tensor, max_new_tokens: int, settings: DecodingSettings
) -> Request:
    """Return the request that `generate` would prepare for a text without further inputs."""
    config = GenerationConfig(max_length=input_ids.shape[1] + max_new_tokens)
    given = {}
    if "position_ids" in inspect.signature(model.forward).parameters:
        given["position_ids"] = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
    return Request(model, input_ids, [], [], config, settings, model_kwargs=given)


def _prepared(config: GenerationConfig | None) -> TypeGuard[GenerationConfig]:
    """Return whether the config comes from `generate`, which puts the special tokens of a request into its copy."""
    return hasattr(config, "_pad_token_tensor")


def _at_strings(stop_strings: str | list[str], tokenizer: PreTrainedTokenizerBase | None) -> StoppingCriteria:
    if tokenizer is None:
        raise ValueError(
            "stop_strings need the tokenizer that they are matched with, and generate does not hand it on; call "
            "lookahead_generate itself with tokenizer=…, or functools.partial(lookahead_generate, tokenizer=…)."
        )
    return StopStringCriteria(tokenizer, stop_strings)


def _configured_stop_strings(model: PreTrainedModel, config: GenerationConfig | None) -> Any:
    """Return the stop strings of a generation config: the given one's, else the model's."""
    own = None if config is None else config.stop_strings
    return own if own is not None else model.generation_config.stop_strings
