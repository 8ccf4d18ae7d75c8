"""Requests to `generate` and to lookahead decoding, and what they have to have in common."""

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, StoppingCriteria
from transformers.generation.streamers import BaseStreamer

from ladechat import lookahead_generate
from tests.tiny import VOCABULARY

PROMPT = torch.tensor([[5, 8, 13, 21, 34, 5, 8, 13]])
PAD = 0
SCORES = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}


def generate(model: Any, *arguments: Any, **request: Any) -> Any:
    """What transformers makes of a request."""
    return model.generate(*arguments, **request)


def lookahead(model: PreTrainedModel, *arguments: Any, **request: Any) -> Any:
    """What lookahead decoding makes of it."""
    return lookahead_generate(model, *arguments, **request)


def asked(model: PreTrainedModel, *arguments: Any, door: Any, **request: Any) -> Any:
    """What lookahead decoding makes of a request, called by itself or, through the door, by `generate`."""
    if door:
        return generate(model, *arguments, **request, custom_generate=lookahead_generate)
    return lookahead(model, *arguments, **request)


def assert_as_generate(
    model: PreTrainedModel, *arguments: Any, door: Any = False, theirs: Any = None, **request: Any
) -> Any:
    """Lookahead decoding returns what `generate` does with the same random numbers. What that is.

    `theirs` is the model that `generate` writes with, where each of them needs one of its own.
    """
    torch.manual_seed(1)
    expected = generate(theirs or model, *arguments, **request)
    torch.manual_seed(1)
    result = asked(model, *arguments, door=door, **request)
    assert_same(result, expected, request)
    return result


class Collected(BaseStreamer):
    """What a streamer was given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.ended = False

    def put(self, value: torch.Tensor) -> None:
        assert not self.ended
        self.given.append(value.flatten().tolist())

    def end(self) -> None:
        self.ended = True


class AfterTwins(StoppingCriteria):
    """Ends a row when two tokens are alike modulo five."""

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return input_ids[:, -1] % 5 == input_ids[:, -2] % 5


class Enough(StoppingCriteria):
    """Ends a row at the eleventh token: one that counts."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        self.asked += 1
        return torch.full((input_ids.shape[0],), self.asked >= 11)


def handed_on(why: str) -> Any:
    """Within it a request goes to transformers' own loop, for this reason, which one warning says."""
    return pytest.warns(UserWarning, match=f"Decoded by transformers' own loop, without a gain: .*{why}")


@contextmanager
def fast() -> Iterator[None]:
    """Within it nothing is handed on, nor warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def padded_batch(dice: random.Random, rows: int) -> dict[str, torch.Tensor]:
    lengths = [dice.randint(1, 20) for _ in range(rows)]
    longest = max(lengths)
    ids = [[PAD] * (longest - n) + [dice.randrange(3, VOCABULARY) for _ in range(n)] for n in lengths]
    mask = [[0] * (longest - n) + [1] * n for n in lengths]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def padded_row(length: int, to: int) -> dict[str, torch.Tensor]:
    """A text of this length, padded on the left to another."""
    text = [3 + (7 * i * i + 3 * i) % 88 for i in range(length)]
    ids, mask = [[PAD] * (to - length) + text], [[0] * (to - length) + [1] * length]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def assert_same(result: Any, expected: Any, about: object = None) -> None:
    """Sequences are equal; scores, where there are any and the row has not ended, nearly."""
    if isinstance(expected, torch.Tensor):
        assert torch.equal(result, expected), about
        return
    assert torch.equal(result.sequences, expected.sequences), about
    for ours, theirs in ((result.scores, expected.scores), (result.logits, expected.logits)):
        for mine, other in zip(ours, theirs, strict=True):
            running = ~mine.isnan().all(dim=1)
            torch.testing.assert_close(mine[running], other[running], atol=1e-3, rtol=1e-3, equal_nan=True)
