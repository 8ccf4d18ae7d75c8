"""How tokens are drawn, in transformers' own processors: what is sampled here is what its `generate` samples."""

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
    """Processors in the order of `generate`. A temperature of 0 is greedy: the argmax, and no draw.

    Args:
        generator: on the logits' device; what draws.
        temperature: what the logits are divided by. One that is all but 0 is 0: divided by it they would overflow.
        top_k: how many of the tokens with the largest logits are left; 0 leaves all.
        top_p: the probability that the likeliest tokens left reach together.
        min_p: the least probability of a token that is left, as a part of the likeliest one's.
        repetition_penalty: what the logits of tokens of the text are divided by; those below 0 are multiplied.
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
