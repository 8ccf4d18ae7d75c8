"""vLLM itself with the real model (`make real-server`): with our drafters it writes its own text, in fewer steps."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from ladechat.bench.questions import read_questions
from tools.real_server import ENVIRONMENT, NAME, running

TOKENS = 96
QUESTIONS = [
    question.turns[0]
    for kind, count in (("chat", 6), ("code", 7), ("maths", 7), ("summary", 6))
    for question in read_questions([kind])[:count]
]
DRAFTS = 8
OWN = {"method": "ngram", "num_speculative_tokens": DRAFTS}
"""With its own settings: matches of five tokens. With those of one, too, it takes as many steps as ours, for far more
drafts."""
OURS = {"method": "custom_class", "model": "ladechat.plugins.vllm.Proposer", "num_speculative_tokens": DRAFTS}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ENVIRONMENT.exists(), reason="make real-server has not been run"),
    pytest.mark.xdist_group("real vllm"),
    pytest.mark.timeout(3600),
]


class Answer(NamedTuple):
    """An answer, and how many steps vLLM took for it."""

    tokens: list[int]
    steps: int


def ask(address: str, question: str, tokens: int = TOKENS) -> Answer:
    body = {
        "model": NAME,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": tokens,
        "temperature": 0,
        "return_token_ids": True,
    }
    said = httpx.post(f"{address}/v1/chat/completions", json=body, timeout=600).raise_for_status().json()
    counts = (said.get("metrics") or {}).get("speculative_decoding") or {"num_accepted_draft_tokens": 0}
    answer = said["choices"][0]["token_ids"]
    return Answer(answer, len(answer) - counts["num_accepted_draft_tokens"])


def served(folder: Path, speculation: object = None) -> Iterator[str]:
    options = [] if speculation is None else ["--speculative-config", json.dumps(speculation)]
    with running("vllm", *options, log=folder / "vllm.log") as address:
        yield address


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    """What vLLM writes without speculation, one question at a time."""
    [answers] = [[ask(each, one) for one in QUESTIONS] for each in served(tmp_path_factory.mktemp("plain"))]
    return answers


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    """The same with vLLM's own n-grams."""
    [answers] = [[ask(each, one) for one in QUESTIONS] for each in served(tmp_path_factory.mktemp("own"), OWN)]
    return answers


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """vLLM with our drafters."""
    yield from served(tmp_path_factory.mktemp("ours"), OURS)


def tokens_a_step(answers: Sequence[Answer]) -> float:
    return sum(len(answer.tokens) for answer in answers) / sum(answer.steps for answer in answers)


def test_the_text_is_its_own_in_fewer_steps_than_with_vllms_n_grams(
    plain: list[Answer], own: list[Answer], ours: str
) -> None:
    answers = [ask(ours, question) for question in QUESTIONS]
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in plain]
    print(f"tokens a step: {tokens_a_step(answers):.3f}, vLLM's n-grams {tokens_a_step(own):.3f}")
    assert tokens_a_step(answers) >= 1.15 * tokens_a_step(own)


def test_four_rows_with_requests_that_arrive_and_leave_write_the_same(plain: list[Answer], ours: str) -> None:
    lengths = [TOKENS // (1 + number % 4) for number in range(len(QUESTIONS))]
    with ThreadPoolExecutor(4) as four:
        answers = list(four.map(ask, [ours] * len(QUESTIONS), QUESTIONS, lengths))
    cut = [answer.tokens[:length] for answer, length in zip(plain, lengths, strict=True)]
    assert [answer.tokens for answer in answers] == cut
    assert sum(map(len, cut)) > sum(answer.steps for answer in answers)
