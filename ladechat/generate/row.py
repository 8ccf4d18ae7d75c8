"""One text by lookahead decoding, with the processors, criteria and streamer of a call of `generate`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import EosTokenCriteria, MaxLengthCriteria
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits
from ladechat.generate.request import DecodingSettings, Request
from ladechat.registry import lookahead

AT_ANY_TIME = (MaxLengthCriteria, EosTokenCriteria)
"""Criteria that may be called repeatedly on a text, because they keep no state."""


def decoder_of(runner: Runner, settings: DecodingSettings) -> Decoder:
    """Return a lookahead decoder with W, N and G."""
    return lookahead(runner, settings.window, settings.ngram, settings.guesses, pool=NGramPool())


class NotNumbers(ValueError):
    """The model's logits are not finite, and tokens were already drawn or shown, which cannot be undone."""


class _Raised(Exception):
    """Carries an exception of the caller's code out of the loop. The loop is a generator, in which a StopIteration
    would become another error, and it raises errors of its own.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _GenerateSampler(Sampler):
    """Draws as `generate` does, and raises its error if there is nothing to draw from."""

    def _draw(self, scores: Tensor) -> int:
        return int(torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1))


@torch.no_grad()
def decode(request: Request, runner: Runner) -> Tensor | GenerateDecoderOnlyOutput | None:
    """Return the text as `generate` does; None if the model's logits are not finite, and nothing was drawn or shown.

    Args:
        request: a request of one row without padding.
        runner: a runner of its model that can verify drafts.

    Raises:
        NotNumbers: they are not finite, and tokens were drawn or shown.
        Exception: any that a processor, a criterion or the streamer raises.
    """
    ids, config = request.input_ids, request.config
    prompt = ids[0].tolist()
    scores: list[Tensor] = []
    logits: list[Tensor] = []

    def observe(processed: Tensor, raw: Tensor) -> None:
        scores.append(processed)
        logits.append(raw)

    def ended(token: int) -> bool:
        if request.streamer is not None:
            request.streamer.put(torch.tensor([token], device="cpu"))
        shown = tuple(scores) if wanted and config.output_scores else None
        return bool(request.criteria(sampler.ids(ids.device), shown).all())

    wanted = bool(config.return_dict_in_generate and (config.output_scores or config.output_logits))
    processors = [_carried(processor) for processor in request.processors]
    sampling = Sampling(processors, bool(config.do_sample), observe=observe if wanted else None)
    sampler = _GenerateSampler(prompt, sampling)
    limits = Limits(request.longest - ids.shape[1], stop=_carried(ended))
    failure: Exception | None = None
    try:
        request.greet()
        steps = decoder_of(runner, request.settings).run(prompt, limits, sampler)
        for _ in steps:
            pass
    except _Raised as raised:
        failure = raised.error
    except FloatingPointError as error:
        if (
            sampling.is_argmax
            and request.streamer is None
            and all(type(one) in AT_ANY_TIME for one in request.criteria)
        ):
            return None
        raise NotNumbers(
            "The model's logits are not finite, so they choose no token; another dtype may help."
        ) from error
    if failure is not None:
        raise failure
    if request.streamer is not None:
        request.streamer.end()
    sequences = sampler.ids(ids.device)  # as processors and criteria leave them, which may change them in place
    if not config.return_dict_in_generate:
        return sequences
    return GenerateDecoderOnlyOutput(
        sequences=sequences,  # type: ignore[arg-type]  # annotated with legacy tensor types
        scores=tuple(scores) if config.output_scores else None,  # type: ignore[arg-type]  # as above
        logits=tuple(logits) if config.output_logits else None,  # type: ignore[arg-type]  # as above
    )


def _carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, except that its errors pass through the loop unchanged."""

    def carrying(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # the caller's code may raise anything
            raise _Raised(error) from error

    return carrying
