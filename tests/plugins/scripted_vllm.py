"""A scripted vLLM: a batch whose rows are requests of known texts, as vLLM calls a proposer for it."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from ladechat.decoder.common_prefix import common_prefix
from ladechat.plugins.vllm import Proposer

DRAFTS, LONGEST, ROWS = 8, 512, 8


def configuration(rows: int = ROWS) -> SimpleNamespace:
    """What a proposer reads of vLLM's configuration."""
    return SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=DRAFTS),
        model_config=SimpleNamespace(max_model_len=LONGEST),
        scheduler_config=SimpleNamespace(max_num_seqs=rows),
    )


class Clock:
    """A clock by which each reading comes a while after the one before."""

    def __init__(self, seconds: Callable[[], float] = lambda: 1.0) -> None:
        self._now, self._seconds = 0.0, seconds

    def __call__(self) -> float:
        self._now += self._seconds()
        return self._now


class Request:
    """A request whose answer is known.

    Attributes:
        text: what prompt and answer are when it has ended.
        length: how many of these tokens are there.
        steps: for each step with a result the number of new tokens.
        drafts: the latest drafts for it.
        drafted: all drafts, with the length of the text that they came after.
    """

    def __init__(self, text: Sequence[int], prompt: int, prefills: int = 0) -> None:
        self.text, self.length, self.prefills = list(text), prompt, prefills
        self.steps: list[int] = []
        self.drafts: list[int] = []
        self.drafted: list[tuple[int, list[int]]] = []

    def forward(self) -> list[int]:
        """The new tokens of a pass: the accepted drafts and one more, or none while the prompt is read."""
        if self.prefills:
            self.prefills -= 1
            return []
        coming = self.text[self.length :]
        new = coming[: common_prefix(self.drafts, coming) + 1]
        self.length += len(new)
        self.steps.append(len(new))
        return new


class ScriptedVllm:
    """A batch of rows: requests arrive at its end; where one leaves, the last row takes its place."""

    def __init__(self, proposer: Proposer) -> None:
        self.proposer = proposer
        self.rows: list[Request] = []

    def arrive(self, *requests: Request) -> None:
        self.rows += requests

    def leave(self, request: Request) -> None:
        row = self.rows.index(request)
        last = self.rows.pop()
        if last is not request:
            self.rows[row] = last

    def step(self) -> None:
        """One pass, and drafts for the next; requests that have ended leave."""
        sampled = [request.forward() for request in self.rows]
        texts = np.zeros((ROWS, LONGEST), np.int32)
        lengths = np.zeros(ROWS, np.int32)
        for row, request in enumerate(self.rows):
            texts[row, : request.length], lengths[row] = request.text[: request.length], request.length
        drafts = self.proposer.propose(sampled, lengths, texts, slot_mappings=None)
        assert len(drafts) == len(self.rows)
        for request, new, own in zip(self.rows, sampled, drafts, strict=True):
            assert all(type(token) is int for token in own)
            assert len(own) <= (max(0, min(DRAFTS, LONGEST - request.length - 1)) if new else 0)
            request.drafts = own
            request.drafted.append((request.length, own))
        for request in list(self.rows):
            if request.length == len(request.text):
                self.leave(request)

    def run(self) -> None:
        """Steps until all requests have left."""
        while self.rows:
            self.step()
