"""The sampling settings as transformers' own logits processors: samples equal those of its `generate`."""

import torch

from ladechat.decoder.sampler import Processor, Sampling
from ladechat.protocol import Settings

LEAST_TEMPERATURE = 1e-3


def sampling(generator: torch.Generator, settings: Settings) -> Sampling:
    """Return the logits processors in the order of `generate`. A temperature of 0 is greedy: the argmax, no draw; so is
    one below `LEAST_TEMPERATURE`, with which the logits would overflow. The generator is on their device.
    """
    processors: list[Processor] = []
    greedy = settings.temperature < LEAST_TEMPERATURE
    if greedy and settings.repetition_penalty == 1.0:
        return Sampling(processors)
    from transformers import (  # a packed model starts without it, seconds earlier
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    if settings.repetition_penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(settings.repetition_penalty))
    if greedy:
        return Sampling(processors)
    if settings.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(settings.temperature))
    if settings.top_k:
        processors.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p < 1.0:
        processors.append(TopPLogitsWarper(settings.top_p))
    if settings.min_p > 0.0:
        processors.append(MinPLogitsWarper(settings.min_p))
    return Sampling(processors, sample=True, generator=generator)
