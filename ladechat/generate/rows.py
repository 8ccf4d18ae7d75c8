"""The rows of a call of `generate`, decoded one after another."""

from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits
from ladechat.generate.request import Settings, context_of, longest_text, padded, rows_of
from ladechat.model.loading.self_check import tree_runner
from ladechat.registry import lookahead

LEAST_CONTEXT = 16
"""Positions that the check of a model takes, where its config does not say how many there are."""


def positions_for(model: PreTrainedModel, prompt_length: int, length: int, settings: Settings) -> int:
    """How many positions a decoder may use, for texts of up to `length` tokens and a window that looks beyond them.

    Raises:
        ValueError: the model has fewer.
    """
    context = context_of(model)
    ahead = settings.window + settings.ngram - 3
    if context is None:
        return length + LEAST_CONTEXT + settings.window + settings.ngram
    if length > context:
        raise ValueError(
            f"Prompt and new tokens may come to {length}, but the model has {context} positions; lower max_new_tokens."
        )
    if prompt_length + ahead > context:
        raise ValueError(
            f"W {settings.window} and N {settings.ngram} look {ahead} positions ahead, and behind a prompt of "
            f"{prompt_length} tokens the model's {context} positions are fewer; lower window or ngram."
        )
    return context


def decoder_of(runner: Runner, settings: Settings, pool: NGramPool | None = None) -> Decoder:
    """Lookahead decoding with W, N and G."""
    return lookahead(runner, settings.window, settings.ngram, settings.guesses, pool=pool)


class Rows:
    """One call of `generate`.

    Raises:
        ValueError: the model has not enough positions, or rows that are not padded on the left.
        SingleTokenOnly: it cannot verify drafts.
    """

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
        self._input_ids, self._processors, self._criteria = input_ids, processors, criteria
        self._config, self._streamer = config, streamer
        self._rows = rows_of(input_ids, model_kwargs.get("attention_mask"))
        longest = longest_text(config, criteria, input_ids)
        self._room = longest - input_ids.shape[1]
        positions = positions_for(model, max(map(len, self._rows)), longest, settings)
        self._pool = NGramPool()
        self._decoder = decoder_of(tree_runner(model, positions), settings, self._pool)
        self._scores: list[list[Tensor]] = []
        self._logits: list[list[Tensor]] = []

    @torch.no_grad()
    def decode(self) -> Tensor | GenerateDecoderOnlyOutput:
        """Decode every row; the result as `generate` returns it.

        Raises:
            ValueError: the model's logits are not numbers.
        """
        if self._streamer is not None:
            self._streamer.put(self._input_ids.cpu())
        try:
            answers = [self._answer(number) for number in range(len(self._rows))]
        except FloatingPointError as error:
            raise ValueError(
                "The model's logits are not finite, so they choose no token; another dtype may help."
            ) from error
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

        config = self._config
        wanted = config.return_dict_in_generate and (config.output_scores or config.output_logits)
        sampling = Sampling(self._processors, config.do_sample, observe=observe if wanted else None)
        sampler = Sampler(self._input_ids[number].tolist(), sampling)

        def ended(token: int) -> bool:
            if self._streamer is not None:
                self._streamer.put(torch.tensor([token]))
            shown = tuple(scores) if wanted and config.output_scores else None
            done: Tensor = self._criteria(sampler.ids(self._input_ids.device), shown)
            return bool(done.all())

        self._pool.clear()
        limits = Limits(self._room, stop=ended)
        return [token for step in self._decoder.run(self._rows[number], limits, sampler) for token in step.tokens]


def _by_step(rows: list[list[Tensor]]) -> tuple[Tensor, ...]:
    """Scores of rows as `generate` gives them: (B, vocabulary) a step; NaN for a row that had ended."""
    longest = max(rows, key=len)
    return tuple(
        torch.cat([row[step] if step < len(row) else torch.full_like(longest[step], torch.nan) for row in rows])
        for step in range(len(longest))
    )
