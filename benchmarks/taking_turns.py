"""Sessions of several decoders that step in turns: a machine that slows down slows all of them alike."""

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
        turn_seconds: its turn is over with the first step behind so many seconds of steps.
        answers: to the prompts of the session so far.
        emitted: tokens of all of them, and of the one that is being written.
    """

    name: str
    runner: Runner
    make: Callable[[Runner], Decoder]
    turn_seconds: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    emitted: int = 0

    def session(self, prompts: Sequence[Prompt], limits: Limits) -> Iterator[None]:
        """Answer all prompts, yielding behind each turn and each answer. Only the steps themselves are timed."""
        decoder, turn = self.make(self.runner), 0.0
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
                self.emitted += len(step.tokens)
                seconds.append(took)
                turn += took
                if turn >= self.turn_seconds:
                    turn = 0.0
                    yield
            self.answers.append(Answer(tuple(tokens), counts[0], len(counts), seconds[0], sum(seconds[1:])))
            turn = 0.0
            yield


def take_turns(
    stepping: Sequence[Stepping], others: Sequence[Contender], prompts: Sequence[Prompt], limits: Limits, number: int
) -> Round:
    """One session: a turn of that one of `stepping` which has emitted the fewest tokens, and so on until all are done.

    So all are at the same place of the text, as far as their turns allow, and at the same time: what the machine does
    meanwhile meets all of them. A turn mostly comes behind one of another, whose KV cache has taken the place of its
    own in the processor's caches; where turns have a length, a slow decoder takes several in a row to get as far. Those
    of `others`, which answer a prompt in one go, do so when the first of `stepping` is done with it.

    Args:
        stepping: one at least.
        others: who else takes part.
        prompts: of the session.
        limits: of an answer.
        number: of the round: who is next of those that are equally far is drawn, and hangs on it.
    """
    dice = random.Random(number)
    for one in stepping:
        one.answers, one.emitted = [], 0
    going = [(one, one.session(prompts, limits)) for one in stepping]
    whole: Round = {other.name: [] for other in others}
    answered = 0
    while going:
        next_one = min(going, key=lambda pair: (pair[0].emitted, dice.random()))
        if next(next_one[1], _DONE) is _DONE:
            going.remove(next_one)
        for prompt in prompts[answered : len(stepping[0].answers)]:
            for other in dice.sample(others, len(others)):
                whole[other.name].append(other.answer(prompt.token_ids, limits))
            answered += 1
    return {**whole, **{one.name: one.answers for one in stepping}}
