"""Sessions of several decoders, one step of each in turn: a machine that slows down slows all of them alike."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ladechat.bench.contenders import Answer, Contender
from ladechat.bench.measure import Round
from ladechat.bench.prompts import Prompt
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Decoder, Limits

_DONE = object()


@dataclass
class Stepping:
    """A decoder whose steps are taken one by one, with a runner, and so a KV cache, of its own.

    Attributes:
        name: what it is called in tables.
        runner: nobody else's.
        make: the decoder, as it is at the beginning of a session.
        answers: to the prompts of the session so far.
    """

    name: str
    runner: Runner
    make: Callable[[Runner], Decoder]
    answers: list[Answer] = field(default_factory=list)

    def session(self, prompts: Sequence[Prompt], limits: Limits) -> Iterator[None]:
        """Answer all prompts, yielding behind each step. Only the steps themselves are timed."""
        decoder = self.make(self.runner)
        self.answers = []
        for prompt in prompts:
            for _ in self.runner.prefill(prompt.token_ids[:1]):  # a prompt of one token leaves nothing in the cache
                pass
            steps = decoder.run(prompt.token_ids, limits)
            counts, tokens, seconds = list[int](), list[int](), list[float]()
            while True:
                began = time.perf_counter()
                step = next(steps, None)
                took = time.perf_counter() - began
                if step is None:
                    break
                counts.append(len(step.tokens))
                tokens += step.tokens
                seconds.append(took)
                yield
            self.answers.append(Answer(tuple(tokens), counts[0], len(counts), seconds[0], sum(seconds[1:])))


def take_turns(
    stepping: Sequence[Stepping], others: Sequence[Contender], prompts: Sequence[Prompt], limits: Limits, number: int
) -> Round:
    """One session: each of `stepping` takes a step, in an order that is drawn anew, until all have answered everything.

    They drift apart, some being faster, but what the machine does meanwhile meets all of them. Those of `others`, which
    answer a prompt in one go, do so when the first of `stepping` is done with it.

    Args:
        stepping: one at least.
        others: who else takes part.
        prompts: of the session.
        limits: of an answer.
        number: of the round: what is drawn hangs on it.
    """
    dice = random.Random(number)
    going = {one.name: one.session(prompts, limits) for one in stepping}
    whole: Round = {other.name: [] for other in others}
    while going:
        for name in dice.sample(list(going), len(going)):
            if next(going[name], _DONE) is _DONE:
                del going[name]
        for other in others:
            behind = prompts[len(whole[other.name]) : len(stepping[0].answers)]
            whole[other.name] += [other.answer(prompt.token_ids, limits) for prompt in behind]
    return {**{one.name: one.answers for one in stepping}, **whole}
