"""Lookahead decoding in your own code, with or without transformers' `generate`. See docs/in-your-own-code.md."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteriaList,
    StopStringCriteria,
)
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.selection import GREEDY, Selection, Selector
from ladechat.decoder.step import Limits, Step
from ladechat.model.eager import EagerRunner
from ladechat.model.request import check_positions, context_of, padded, refuse, rows_of
from ladechat.model.self_check import check_layouts

DEFAULTS = LookaheadSettings()
LEAST_CONTEXT = 16
"""Positions that the check of a model takes, where its config does not say how many there are."""


def lookahead_generate(
    model: PreTrainedModel,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList | None = None,
    stopping_criteria: StoppingCriteriaList | None = None,
    generation_config: GenerationConfig | None = None,
    *,
    window: int = DEFAULTS.window,
    ngram: int = DEFAULTS.ngram,
    guesses: int = DEFAULTS.guesses,
    streamer: BaseStreamer | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    stop_strings: str | list[str] | None = None,
    **kwargs: Any,
) -> Tensor | GenerateDecoderOnlyOutput:
    """What `model.generate` writes, in fewer forward passes.

    Call it like `generate`, or hand it to `generate` as `custom_generate`. There transformers (5.17) drops `streamer`,
    `tokenizer` and `stop_strings` on the way; `functools.partial(lookahead_generate, streamer=…)` brings them along.

    Rows of a batch are decoded one after another, each exactly as alone. Beam search is transformers' own: nothing is
    gained there.

    Args:
        model: decoder-only, in evaluation mode.
        input_ids: (B, n) int64, padded on the left if at all.
        logits_processor: as for `generate`.
        stopping_criteria: as for `generate`.
        generation_config: as for `generate`.
        window: W of lookahead decoding (Fu et al. 2024, arXiv 2402.02057): columns of the Jacobi window.
        ngram: N, tokens in an n-gram.
        guesses: G, the most n-grams verified in one step.
        streamer: gets the prompt, then token by token.
        tokenizer: what `stop_strings` are matched with.
        stop_strings: the text ends where one of them is complete.
        kwargs: whatever else `generate` takes, as max_new_tokens, do_sample, temperature, attention_mask.

    Returns:
        As `generate`: (B, n + new) int64, or a `GenerateDecoderOnlyOutput` with `return_dict_in_generate`.

    Raises:
        ValueError: W, N or G out of range, padding on the right, more tokens than the model has positions, or an option
            that cannot be carried out exactly. `UnsupportedModel` is one, too.
    """
    settings = LookaheadSettings(window, ngram, guesses)
    if not _prepared(generation_config):
        own = {"window": window, "ngram": ngram, "guesses": guesses, "streamer": streamer}
        loop = partial(lookahead_generate, **own, tokenizer=tokenizer, stop_strings=stop_strings)  # type: ignore[arg-type]
        return model.generate(  # type: ignore[operator, no-any-return]
            input_ids,
            generation_config=generation_config,
            logits_processor=logits_processor,
            stopping_criteria=stopping_criteria,
            custom_generate=loop,
            **kwargs,
        )
    assert generation_config is not None
    processors, criteria = logits_processor or LogitsProcessorList(), StoppingCriteriaList(stopping_criteria or [])
    if stop_strings is not None:
        if tokenizer is None:
            raise ValueError("stop_strings need the tokenizer that they are matched with; pass tokenizer=… too.")
        criteria.append(StopStringCriteria(tokenizer, stop_strings))
    if streamer is not None and generation_config.num_beams > 1:
        raise ValueError("A streamer cannot follow beam search: which beam is the text is known at its end.")
    if streamer is not None:
        streamer.put(input_ids.cpu())
    if generation_config.num_beams > 1:
        beams: Any = model._beam_search  # what `generate` itself calls; nothing public takes what it has prepared
        return beams(input_ids, processors, criteria, generation_config, **kwargs)  # type: ignore[no-any-return]
    return _Request(model, input_ids, processors, criteria, generation_config, settings, streamer, kwargs).carry_out()


def lookahead_steps(
    model: PreTrainedModel,
    input_ids: Tensor,
    *,
    max_new_tokens: int,
    eos_token_id: int | Sequence[int] | None = None,
    window: int = DEFAULTS.window,
    ngram: int = DEFAULTS.ngram,
    guesses: int = DEFAULTS.guesses,
    selection: Selection = GREEDY,
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
        selection: how tokens are chosen; greedily unless it says otherwise.

    Raises:
        ValueError: see `lookahead_generate`.
    """
    if input_ids.shape[0] != 1:
        raise ValueError(f"lookahead_steps decodes one row at a time, and input_ids has {input_ids.shape[0]}.")
    ends = model.generation_config.eos_token_id if eos_token_id is None else eos_token_id
    eos_ids = frozenset() if ends is None else frozenset([ends] if isinstance(ends, int) else ends)
    prompt = input_ids[0].tolist()
    settings = LookaheadSettings(window, ngram, guesses)
    decoder = LookaheadDecoder(_runner(model, len(prompt) + max_new_tokens, settings), settings)
    return decoder.run(prompt, Limits(max_new_tokens, eos_ids), Selector(prompt, selection))


def _prepared(config: GenerationConfig | None) -> bool:
    """Whether it comes from `generate`, which puts the special tokens of a request into its copy."""
    return hasattr(config, "_pad_token_tensor")


def _runner(model: PreTrainedModel, length: int, settings: LookaheadSettings) -> EagerRunner:
    """A runner with an empty cache, for texts of up to `length` tokens and a window that looks beyond them."""
    context = context_of(model)
    if context is not None and length > context:
        raise ValueError(
            f"Prompt and new tokens may come to {length}, but the model has {context} positions; lower max_new_tokens."
        )
    beyond = LEAST_CONTEXT + settings.window + settings.ngram
    runner = EagerRunner(model, context or length + beyond)
    check_layouts(runner)
    return runner


class _Request:
    """One call of `generate`: its rows, decoded one after another."""

    def __init__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        processors: LogitsProcessorList,
        criteria: StoppingCriteriaList,
        config: GenerationConfig,
        settings: LookaheadSettings,
        streamer: BaseStreamer | None,
        model_kwargs: dict[str, Any],
    ) -> None:
        refuse(model, len(input_ids), processors, criteria, config, model_kwargs)
        self._input_ids, self._processors, self._criteria = input_ids, processors, criteria
        self._config, self._settings, self._streamer = config, settings, streamer
        mask = model_kwargs.get("attention_mask")
        self._rows = rows_of(input_ids, mask)
        check_positions(model_kwargs.get("position_ids"), mask)
        self._runner = _runner(model, config.max_length, settings)
        self._scores: list[list[Tensor]] = []
        self._logits: list[list[Tensor]] = []

    @torch.no_grad()
    def carry_out(self) -> Tensor | GenerateDecoderOnlyOutput:
        """Decode every row; the result as `generate` returns it."""
        answers = [self._answer(number) for number in range(len(self._rows))]
        if self._streamer is not None:
            self._streamer.end()
        pad = self._config._pad_token_tensor
        sequences = padded(answers, self._input_ids, 0 if pad is None else int(pad))
        if not self._config.return_dict_in_generate:
            return sequences
        return GenerateDecoderOnlyOutput(
            sequences=sequences,  # type: ignore[arg-type]
            scores=_by_step(self._scores) if self._config.output_scores else None,  # type: ignore[arg-type]
            logits=_by_step(self._logits) if self._config.output_logits else None,  # type: ignore[arg-type]
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

        config = self._config
        wanted = config.return_dict_in_generate and (config.output_scores or config.output_logits)
        selection = Selection(self._processors, config.do_sample, observe=observe if wanted else None)
        selector = Selector(self._input_ids[number].tolist(), selection)

        def ended(token: int) -> bool:
            if self._streamer is not None:
                self._streamer.put(torch.tensor([token]))
            text = selector.ids(self._input_ids.device)
            shown = tuple(scores) if wanted and config.output_scores else None
            return bool(self._criteria(text, shown))

        prompt = self._rows[number]
        room = config.max_length - self._input_ids.shape[1]
        decoder = LookaheadDecoder(self._runner, self._settings)
        return [token for step in decoder.run(prompt, Limits(room, stop=ended), selector) for token in step.tokens]


def _by_step(rows: list[list[Tensor]]) -> tuple[Tensor, ...]:
    """Scores of rows as `generate` gives them: (B, vocabulary) a step; NaN for a row that had ended."""
    longest = max(rows, key=len)
    return tuple(
        torch.cat([row[step] if step < len(row) else torch.full_like(longest[step], torch.nan) for row in rows])
        for step in range(len(longest))
    )
