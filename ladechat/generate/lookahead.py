"""Lookahead decoding in your own code, with or without transformers' `generate`. See docs/in-your-own-code.md."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

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
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import GREEDY, Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.generate.request import check_positions, context_of, own_copies, padded, refuse, refuse_mode, rows_of
from ladechat.model.loading.self_check import choose_runner
from ladechat.registry import lookahead

WINDOW, NGRAM, GUESSES = 5, 3, 5
LEAST_CONTEXT = 16
"""Positions that the check of a model takes, where its config does not say how many there are."""


class Settings(NamedTuple):
    """W, N and G."""

    window: int
    ngram: int
    guesses: int


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

    Rows of a batch are decoded one after another, each exactly as alone. Beam search is transformers' own: nothing is
    gained there. A model that cannot verify several tokens in a pass is decoded plainly, with a warning that says why.

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
    """Run what `generate` has prepared: beam search by its own code, everything else by our loop."""
    processors, criteria = logits_processor or LogitsProcessorList(), stopping_criteria or StoppingCriteriaList()
    refuse_mode(config)
    if config.num_beams == 1:
        return _Request(model, input_ids, processors, criteria, config, settings, streamer, model_kwargs).carry_out()
    if streamer is not None:
        raise ValueError("A streamer cannot follow beam search: which beam is the text is known at its end.")
    rows_of(input_ids, model_kwargs.get("attention_mask"))  # for what it raises
    beams: Any = model._beam_search  # what `generate` itself calls; nothing public takes what it has prepared
    result: Tensor | GenerateDecoderOnlyOutput = beams(input_ids, processors, criteria, config, **model_kwargs)
    return result


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
    ends = model.generation_config.eos_token_id if eos_token_id is None else eos_token_id
    eos_ids = frozenset() if ends is None else frozenset([ends] if isinstance(ends, int) else ends)
    prompt = input_ids[0].tolist()
    settings = Settings(window, ngram, guesses)
    decoder = _decoder(model, len(prompt), len(prompt) + max_new_tokens, settings)
    return decoder.run(prompt, Limits(max_new_tokens, eos_ids), Sampler(prompt, sampling))


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


def _decoder(
    model: PreTrainedModel, prompt_length: int, length: int, settings: Settings, pool: NGramPool | None = None
) -> Decoder:
    """A decoder with nothing cached, for texts of up to `length` tokens and a window that looks beyond them."""
    context = context_of(model)
    if context is not None and length > context:
        raise ValueError(
            f"Prompt and new tokens may come to {length}, but the model has {context} positions; lower max_new_tokens."
        )
    ahead = settings.window + settings.ngram - 3
    if context is not None and prompt_length + ahead > context:
        raise ValueError(
            f"W {settings.window} and N {settings.ngram} look {ahead} positions ahead, and behind a prompt of "
            f"{prompt_length} tokens the model's {context} positions are fewer; lower window or ngram."
        )
    runner = choose_runner(model, context or length + LEAST_CONTEXT + settings.window + settings.ngram)
    if runner.capabilities.tree_attention:
        return lookahead(runner, *settings, pool=pool)
    warnings.warn(f"Plain decoding: {runner.capabilities.single_token}", stacklevel=4)
    return Decoder(runner)


class _Request:
    """One call of `generate`: its rows, decoded one after another."""

    def __init__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        processors: LogitsProcessorList,
        criteria: StoppingCriteriaList,
        config: GenerationConfig,
        settings: Settings,
        streamer: BaseStreamer | None,
        model_kwargs: dict[str, Any],
    ) -> None:
        refuse(model, len(input_ids), processors, criteria, config, model_kwargs)
        if streamer is not None and len(input_ids) > 1:
            raise ValueError("A streamer takes one row, and there are several: they are decoded one after another.")
        self._input_ids, self._processors, self._criteria = input_ids, processors, criteria
        self._config, self._streamer = config, streamer
        mask = model_kwargs.get("attention_mask")
        self._rows = rows_of(input_ids, mask)
        check_positions(model_kwargs.get("position_ids"), mask)
        self._pool = NGramPool()
        self._decoder = _decoder(model, max(map(len, self._rows)), config.max_length, settings, self._pool)
        self._scores: list[list[Tensor]] = []
        self._logits: list[list[Tensor]] = []

    @torch.no_grad()
    def carry_out(self) -> Tensor | GenerateDecoderOnlyOutput:
        """Decode every row; the result as `generate` returns it."""
        if self._streamer is not None:
            self._streamer.put(self._input_ids.cpu())
        answers = [self._answer(number) for number in range(len(self._rows))]
        if self._streamer is not None:
            self._streamer.end()
        pad = self._config._pad_token_tensor
        sequences = padded(answers, self._input_ids, 0 if pad is None else int(pad))
        if not self._config.return_dict_in_generate:
            return sequences
        return GenerateDecoderOnlyOutput(
            sequences=sequences,  # type: ignore[arg-type]  # annotated with legacy tensor types
            scores=_by_step(self._scores) if self._config.output_scores else None,  # type: ignore[arg-type]  # as above
            logits=_by_step(self._logits) if self._config.output_logits else None,  # type: ignore[arg-type]  # as above
        )

    def _answer(self, number: int) -> list[int]:
        """The new tokens of one row. Processors and criteria see its padding, as they do in `generate`."""
        scores: list[Tensor] = []
        logits: list[Tensor] = []
        self._scores.append(scores)
        self._logits.append(logits)

        def observe(processed: Tensor, raw: Tensor) -> None:
            scores.append(processed)
            logits.append(raw)

        config, several = self._config, len(self._rows) > 1
        # Those that keep a state keep one for each row.
        processors = own_copies(self._processors) if several else self._processors
        criteria = own_copies(self._criteria) if several else self._criteria
        wanted = config.return_dict_in_generate and (config.output_scores or config.output_logits)
        sampling = Sampling(processors, config.do_sample, observe=observe if wanted else None)
        sampler = Sampler(self._input_ids[number].tolist(), sampling)

        def ended(token: int) -> bool:
            if self._streamer is not None:
                self._streamer.put(torch.tensor([token]))
            text = sampler.ids(self._input_ids.device)
            shown = tuple(scores) if wanted and config.output_scores else None
            answers = [bool(one(text, shown)) for one in criteria]  # all are asked, for some of them count
            return any(answers)

        prompt = self._rows[number]
        room = config.max_length - self._input_ids.shape[1]
        self._pool.clear()
        return [token for step in self._decoder.run(prompt, Limits(room, stop=ended), sampler) for token in step.tokens]


def _by_step(rows: list[list[Tensor]]) -> tuple[Tensor, ...]:
    """Scores of rows as `generate` gives them: (B, vocabulary) a step; NaN for a row that had ended."""
    longest = max(rows, key=len)
    return tuple(
        torch.cat([row[step] if step < len(row) else torch.full_like(longest[step], torch.nan) for row in rows])
        for step in range(len(longest))
    )
