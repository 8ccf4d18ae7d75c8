"""What is asked in `benchmarks.speed`."""

import random

from ladechat.bench.options import KINDS
from ladechat.bench.prompts import Prompt, make_prompts
from ladechat.bench.questions import read_questions
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.step import Limits
from ladechat.model.loading import LoadedModel

LIMIT = 64
"""The tokens of an answer, at most."""
RANDOM_PROMPTS, RANDOM_LENGTH = 8, 60


def prompts_of(loaded: LoadedModel) -> list[Prompt]:
    """The questions of `ladechat bench`, and prompts without sense."""
    asked = make_prompts(loaded, read_questions(KINDS), LIMIT, tick=lambda: None)
    return [*asked, *random_prompts(loaded, Limits(LIMIT, loaded.eos_ids))]


def random_prompts(loaded: LoadedModel, limits: Limits) -> list[Prompt]:
    """Prompts without sense, after which little can be guessed: the worst case of every drafting decoder."""
    dice = random.Random(0)
    plain = AutoregressiveDecoder(loaded.runner)
    prompts = []
    for number in range(RANDOM_PROMPTS):
        ids = [dice.randrange(3, loaded.vocabulary) for _ in range(RANDOM_LENGTH)]
        answer = tuple(token for step in plain.run(ids, limits) for token in step.tokens)
        prompts.append(Prompt("random", f"random {number}", ids, answer))
    return prompts
