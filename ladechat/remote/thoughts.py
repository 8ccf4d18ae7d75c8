"""Thoughts that a server leaves in the text, between ``<think>`` and ``</think>`` at its beginning, taken apart.

Servers with a reasoning parser do that themselves; others, and SGLang's own `/generate`, do not.
"""

from collections.abc import Iterator
from dataclasses import replace

from ladechat.engine_process.thoughts import Thoughts
from ladechat.remote.reports import Ended, Report, Tokens

OPEN, CLOSE = "<think>", "</think>"


class ThoughtsInText:
    """Marks the thoughts of one answer as such.

    Args:
        begun: whether the prompt ends with the first mark.
        taken_apart: whether no thoughts come any more, as in the rest of an answer that goes on.
    """

    def __init__(self, *, begun: bool = False, taken_apart: bool = False) -> None:
        self._thoughts = None if taken_apart else Thoughts((OPEN, CLOSE), begun=begun)

    def read(self, reported: Report) -> Iterator[Report]:
        """Yield a report with its thoughts marked; text that was held back comes before the end."""
        if isinstance(reported, Tokens) and reported.reasoning:  # the server has taken them apart
            self._thoughts = None
        if self._thoughts is not None and isinstance(reported, Tokens):
            reported = _divided(reported, self._thoughts)
        if self._thoughts is not None and isinstance(reported, Ended) and (rest := self._thoughts.rest()):
            yield Tokens([rest], [0], [0.0])
        yield reported


def _divided(step: Tokens, thoughts: Thoughts) -> Tokens:
    """Return a step with its thoughts marked. A token that becomes two has an unknown one before it."""
    pieces, reasoning = thoughts.divide(step.pieces)
    token_ids, logprobs = list(step.token_ids), list(step.logprobs)
    if len(pieces) > len(token_ids):
        token_ids.insert(reasoning - 1, 0)
        logprobs.insert(reasoning - 1, 0.0)
    return replace(step, pieces=pieces, token_ids=token_ids, logprobs=logprobs, reasoning=reasoning)
