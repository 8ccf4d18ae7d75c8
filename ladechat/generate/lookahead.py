"""Lookahead decoding in your own code, with or without transformers' `generate`. See docs/in-your-own-code.md."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

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
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import GREEDY, Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.generate.fallback import run_own_loop, why_own_loop
from ladechat.generate.request import (
    Settings,
    refuse,
    refuse_assistance,
    refuse_lost_text,
    refuse_mode,
    refuse_unknown_ids,
    rows_of,
)
from ladechat.generate.rows import Rows, decoder_of, positions_for
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.runners.cache_probe import SingleTokenOnly, UnsupportedModel

WINDOW, NGRAM, GUESSES = 5, 3, 5
ASSISTANT = "assistant_model"
ON_THE_WAY = ("ladechat", "transformers", "torch")
"""Packages between a caller's line and this module."""


def lookahead_generate(
    model: PreTrainedModel,
    input_ids: Tensor,
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
) -> Tensor | GenerateDecoderOnlyOutput:
    """What `model.generate` writes, in fewer forward passes.

    Call it like `generate`, or hand it to `generate` as `custom_generate`. There transformers (5.17) drops `streamer`
    and `tokenizer` on the way; `functools.partial(lookahead_generate, streamer=…)` brings them along.

    Rows of a batch are decoded one after another, each exactly as alone. What cannot be shown to be the same goes to
    the loop that `generate` itself would run, with a warning that says why; beam search goes there, too.

    Args:
        model: decoder-only, in evaluation mode.
        input_ids: (B, n) int64, padded on the left if at all.
        logits_processor: as for `generate`.
        stopping_criteria: as for `generate`.
        generation_config: as for `generate`.
        window: W of lookahead decoding (Fu et al. 2024, arXiv 2402.02057): columns of the Jacobi window; 0 has none.
        ngram: N, tokens in an n-gram.
        guesses: G, the most n-grams verified in one step.
        streamer: gets the prompt, then token by token.
        tokenizer: what `stop_strings` are matched with.
        stop_strings: the text ends where one of them is complete.
        kwargs: whatever else `generate` takes, as max_new_tokens, do_sample, temperature, attention_mask.

    Returns:
        As `generate`: (B, n + new) int64, or a `GenerateDecoderOnlyOutput` with `return_dict_in_generate`.

    Raises:
        ValueError: W, N or G out of range or beyond the model's positions, padding on the right, more tokens than the
            model has positions, or an option that cannot be carried out exactly. `UnsupportedModel` is one, too.
    """
    settings = Settings(window, ngram, guesses)
    settings.check()
    if _prepared(generation_config):
        if stop_strings is not None:
            stopping_criteria = StoppingCriteriaList(stopping_criteria or [])
            stopping_criteria.append(_at_strings(stop_strings, tokenizer))
        return _carry_out(
            model, input_ids, logits_processor, stopping_criteria, generation_config, settings, streamer, kwargs
        )

    configured = _configured_stop_strings(model, generation_config)
    if configured is not None:
        kwargs["stop_strings"] = None  # generate would want their tokenizer, and keep it to itself
    own: dict[str, Any] = {"window": window, "ngram": ngram, "guesses": guesses, "streamer": streamer}
    own |= {"tokenizer": tokenizer, "stop_strings": configured if stop_strings is None else stop_strings}
    own |= {ASSISTANT: kwargs.pop(ASSISTANT, None)}

    def loop(model: PreTrainedModel, input_ids: Tensor, **prepared: Any) -> Tensor | GenerateDecoderOnlyOutput:
        return lookahead_generate(model, input_ids, **{**own, **prepared})

    result: Tensor | GenerateDecoderOnlyOutput = model.generate(  # type: ignore[operator]  # a mixin's, unseen by mypy
        input_ids,
        generation_config=generation_config,
        logits_processor=logits_processor,
        stopping_criteria=stopping_criteria,
        custom_generate=loop,
        **kwargs,
    )
    return result


def _carry_out(
    model: PreTrainedModel,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList | None,
    stopping_criteria: StoppingCriteriaList | None,
    config: GenerationConfig,
    settings: Settings,
    streamer: BaseStreamer | None,
    model_kwargs: dict[str, Any],
) -> Tensor | GenerateDecoderOnlyOutput:
    """Run what `generate` has prepared: by lookahead decoding, or by its own loop, with a warning that says why."""
    processors, criteria = logits_processor or LogitsProcessorList(), stopping_criteria or StoppingCriteriaList()
    refuse_mode(config)
    refuse_assistance(config, processors, criteria, model_kwargs.pop(ASSISTANT, None))
    if config.num_beams > 1:
        if streamer is not None:
            raise ValueError("A streamer cannot follow beam search: which beam is the text is known at its end.")
        rows_of(input_ids, model_kwargs.get("attention_mask"))  # for what it raises
        return run_own_loop(model, input_ids, processors, criteria, config, None, model_kwargs)

    refuse(model, config, model_kwargs)
    refuse_unknown_ids(model, input_ids, model_kwargs.get("attention_mask"))
    refuse_lost_text(model, config, criteria, input_ids)
    if streamer is not None and len(input_ids) > 1:
        raise ValueError("A streamer takes one row, and there are several: they are decoded one after another.")
    reason = why_own_loop(model, input_ids, processors, criteria, config, model_kwargs)
    if reason is None:
        try:
            rows = Rows(model, input_ids, processors, criteria, config, settings, streamer, model_kwargs)
        except (SingleTokenOnly, UnsupportedModel) as error:
            reason = str(error).removesuffix(".")
        else:
            return rows.decode()
    _warn_at_callers_line(f"Decoded by transformers' own loop, without a gain: {reason}.")
    return run_own_loop(model, input_ids, processors, criteria, config, streamer, model_kwargs)


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
    """The steps of lookahead decoding, one forward pass each: what was drafted, what was accepted, window and pool.

    Args:
        model: decoder-only, in evaluation mode.
        input_ids: (1, n) int64.
        max_new_tokens: when to end at the latest.
        eos_token_id: the tokens that end the text; None takes those of the model's generation config.
        window: W, columns of the Jacobi window.
        ngram: N, tokens in an n-gram.
        guesses: G, the most n-grams verified in one step.
        sampling: how tokens are chosen; greedily unless it says otherwise.

    Raises:
        ValueError: see `lookahead_generate`.
    """
    if input_ids.shape[0] != 1:
        raise ValueError(f"lookahead_steps decodes one row at a time, and input_ids has {input_ids.shape[0]}.")
    refuse_unknown_ids(model, input_ids)
    ends = model.generation_config.eos_token_id if eos_token_id is None else eos_token_id
    eos_ids = frozenset() if ends is None else frozenset([ends] if isinstance(ends, int) else ends)
    prompt = input_ids[0].tolist()
    settings = Settings(window, ngram, guesses)
    settings.check()
    positions = positions_for(model, len(prompt), len(prompt) + max_new_tokens, settings)
    runner = choose_runner(model, positions)
    if runner.capabilities.tree_attention:
        decoder = decoder_of(runner, settings)
    else:
        warnings.warn(f"Plain decoding: {runner.capabilities.single_token}", stacklevel=2)
        decoder = Decoder(runner)
    return decoder.run(prompt, Limits(max_new_tokens, eos_ids), Sampler(prompt, sampling))


def _warn_at_callers_line(message: str) -> None:
    """Warn of the line from which all this was called, which may have gone through transformers' `generate`."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ON_THE_WAY:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _prepared(config: GenerationConfig | None) -> TypeGuard[GenerationConfig]:
    """Whether it comes from `generate`, which puts the special tokens of a request into its copy."""
    return hasattr(config, "_pad_token_tensor")


def _at_strings(stop_strings: str | list[str], tokenizer: PreTrainedTokenizerBase | None) -> StoppingCriteria:
    if tokenizer is None:
        raise ValueError(
            "stop_strings need the tokenizer that they are matched with, and generate does not hand it on; call "
            "lookahead_generate itself with tokenizer=…, or functools.partial(lookahead_generate, tokenizer=…)."
        )
    return StopStringCriteria(tokenizer, stop_strings)


def _configured_stop_strings(model: PreTrainedModel, config: GenerationConfig | None) -> Any:
    """The stop strings of a request that come from a generation config: the given one's, else the model's."""
    own = None if config is None else config.stop_strings
    return own if own is not None else model.generation_config.stop_strings
