"""llama.cpp as a contestant, on a model that is made up: what it answers, and in how many passes."""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.real_llama import Guess, LlamaCpp

PROMPT = [3, 1, 4]


def next_token(text: list[int]) -> int:
    return (5 * text[-1] + len(text)) % 11


class MadeUp:
    """The calls of llama-cpp-python that are needed, with `next_token` as the model."""

    def __init__(self) -> None:
        self.cache: list[int] = []
        self.passed = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_: SimpleNamespace()

    def llama_batch_init(self, most: int, *_: int) -> Any:
        ids: Any = [[0] for _ in range(most)]
        return SimpleNamespace(token=[0] * most, pos=[0] * most, n_seq_id=[0] * most, seq_id=ids, logits=[0] * most)

    def llama_model_size(self, _model: object) -> int:
        return 7

    def llama_memory_clear(self, _memory: object, _data: bool) -> None:
        self.cache = []

    def llama_decode(self, _context: object, batch: Any) -> int:
        self.passed = len(self.cache)
        self.wanted = [index for index in range(batch.n_tokens) if batch.logits[index]]
        assert batch.pos[: batch.n_tokens] == list(range(self.passed, self.passed + batch.n_tokens))
        self.cache += batch.token[: batch.n_tokens]
        return 0

    def llama_memory_seq_rm(self, _memory: object, _sequence: int, begin: int, _end: int) -> None:
        del self.cache[begin:]

    def llama_sampler_sample(self, _sampler: object, _context: object, index: int) -> int:
        assert index in self.wanted
        return next_token(self.cache[: self.passed + index + 1])


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LlamaCpp:
    monkeypatch.setitem(sys.modules, "llama_cpp", MadeUp())
    monkeypatch.setattr("benchmarks.real_llama.version", lambda _: "0")
    return LlamaCpp(Path("made-up.gguf"), "BF16", 2)


def plain(tokens: int) -> list[int]:
    text = list(PROMPT)
    for _ in range(tokens):
        text.append(next_token(text))
    return text[len(PROMPT) :]


def right_then_wrong(right: int) -> Guess:
    """Drafts of which so many are what the model says."""

    def guess(text: list[int]) -> list[int]:
        longer = list(text)
        for _ in range(right):
            longer.append(next_token(longer))
        return [*longer[len(text) :], 99]

    return guess


def test_plain_decoding_takes_a_pass_a_token(model: LlamaCpp) -> None:
    found = model.answer(PROMPT, 9, [], 0.0, 0, None)
    assert found["tokens"] == plain(9)
    assert (found["passes"], found["slots"], found["first_tokens"]) == (9, 9, 1)


@pytest.mark.parametrize("right", range(4))
def test_drafts_change_the_number_of_passes_and_no_token(model: LlamaCpp, right: int) -> None:
    for tokens, again in itertools.product((1, 2, 9, 10), range(2)):
        found = model.answer(PROMPT, tokens, [], 0.0, again, right_then_wrong(right))
        assert found["tokens"] == plain(tokens)
        assert found["passes"] == 1 + -(-(tokens - 1) // (right + 1))


def test_an_answer_ends_with_an_end_token_also_where_it_was_drafted(model: LlamaCpp) -> None:
    expected = plain(9)
    end = expected[4]
    for guess in (None, right_then_wrong(3)):
        found = model.answer(PROMPT, 9, [end], 0.0, 0, guess)
        assert found["tokens"] == expected[: expected.index(end) + 1]
