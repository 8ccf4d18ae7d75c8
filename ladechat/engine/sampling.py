"""The sampling settings as transformers' own logits processors: samples equal those of its `generate`."""

import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ladechat.decoder.sampler import Processor, Sampling

LEAST_TEMPERATURE = 1e-3


def sampling(
    generator: torch.Generator,
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
) -> Sampling:
    """Return the logits processors in the order of `generate`. A temperature of 0 is greedy: the argmax, no draw.

    Args:
        generator: the random generator, on the logits' device.
        temperature: the divisor of the logits. One below `LEAST_TEMPERATURE` counts as 0: the logits would overflow.
        top_k: how many of the tokens with the largest logits remain; 0: all.
        top_p: the total probability of the most probable tokens that remain.
        min_p: the minimum probability of a token that remains, as a fraction of the most probable one's.
        repetition_penalty: the divisor of the logits of tokens in the text; logits below 0 are multiplied by it.
    """
    processors: list[Processor] = []
    if repetition_penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(repetition_penalty))
    if temperature < LEAST_TEMPERATURE:
        return Sampling(processors)
    if temperature != 1.0:
        processors.append(TemperatureLogitsWarper(temperature))
    if top_k:
        processors.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        processors.append(TopPLogitsWarper(top_p))
    if min_p > 0.0:
        processors.append(MinPLogitsWarper(min_p))
    return Sampling(processors, sample=True, generator=generator)
