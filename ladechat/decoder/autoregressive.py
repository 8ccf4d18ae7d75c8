"""Plain decoding, one token a pass: what every faster decoder must equal, and what its speedup is measured against."""

import time
from collections.abc import Iterator, Sequence

from ladechat.decoder.acceptance import log_probabilities
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits, Step
from ladechat.decoder.verify_mask import causal_layout


class AutoregressiveDecoder:
    """Greedy decoding, one token a step."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def run(self, prompt: Sequence[int], limits: Limits, generated: int = 0) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        for _ in self.runner.prefill(prompt):
            pass
        token = prompt[-1]
        for _ in range(limits.room(len(prompt), self.runner.context_length)):
            layout = causal_layout([token])
            cache_length = len(self.runner.tokens)
            started = time.perf_counter()
            logits = self.runner.forward(layout)
            token = int(logits[0].argmax())
            forward_seconds = time.perf_counter() - started
            self.runner.keep([0])
            yield Step(
                tokens=(token,),
                logprobs=log_probabilities(logits, [0], [token]),
                origins=("model",),
                slots=1,
                cache_length=cache_length,
                forward_seconds=forward_seconds,
            )
            if token in limits.eos_ids:
                return
