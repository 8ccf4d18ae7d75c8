"""vLLM and llama.cpp's server with the real model, on this machine: what they tell is what is shown."""

import asyncio
import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ladechat.protocol import Failed, Step, Stop, TurnFinished
from tests.remote.talking import Talk, talking
from tests.waiting import until
from tools.real_server import ENVIRONMENT, GGUF, NAME, start, wait_for_answers

QUESTION = "Count from 1 to 30, with a comma behind each number."
OTHER = "Repeat this sentence four times: The cat sat on the mat."
DRAFTED = {"vllm": QUESTION, "llama.cpp": OTHER}
"""A question to which each server's drafts are accepted."""
TOKENS = 80
LONG = 1500
NGRAMS = '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 3, "prompt_lookup_min": 1}'
OPTIONS = {"vllm": ["--speculative-config", NGRAMS], "llama.cpp": ["--speculate"]}
ANSWERS_AT_WORK = {"vllm": r"^vllm:num_requests_running\S* (\S+)", "llama.cpp": r"^llamacpp:requests_processing (\S+)"}
"""Where the metrics of a server say how many answers it is at work on."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not (ENVIRONMENT.exists() and GGUF.exists()), reason="make real-server has not been run"),
    pytest.mark.xdist_group("real servers"),
    pytest.mark.timeout(3600),
]


class Server:
    """A server in a process of its own, at one address, that can be killed and started again."""

    def __init__(self, kind: str, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.kind, self._log = kind, log
        self.root = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = start(self.kind, "--port", str(self._port), *OPTIONS[self.kind], log=self._log)
        wait_for_answers(self._process, self.root, self._log)

    def kill(self) -> None:
        """End it and all that it has started, at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def whole(self, question: str) -> dict[str, Any]:
        """Its own answer without a stream."""
        body = {"model": NAME, "messages": [{"role": "user", "content": question}], "max_tokens": TOKENS}
        found = httpx.post(f"{self.root}/v1/chat/completions", json={**body, "temperature": 0, "top_p": 1}, timeout=600)
        answer: dict[str, Any] = found.raise_for_status().json()
        return answer

    def at_work(self) -> float:
        """How many answers it is at work on."""
        metrics = httpx.get(f"{self.root}/metrics", timeout=60).text
        return float(re.findall(ANSWERS_AT_WORK[self.kind], metrics, re.MULTILINE)[0])

    @asynccontextmanager
    async def talk(self) -> AsyncIterator[Talk]:
        """Talk with it."""
        async with talking(SimpleNamespace(url=f"{self.root}/v1")) as talk:  # type: ignore[arg-type]  # of it, the address
            yield talk


@pytest.fixture(scope="module", params=OPTIONS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(request.param, tmp_path_factory.mktemp("server") / "log")
    made.start()
    yield made
    made.kill()


async def test_the_text_and_the_passes_are_those_of_its_answer_without_a_stream(server: Server) -> None:
    whole = await asyncio.to_thread(server.whole, DRAFTED[server.kind])
    async with server.talk() as talk:
        done = await talk.answer(DRAFTED[server.kind], most=TOKENS)
    tokens = whole["usage"]["completion_tokens"]
    if server.kind == "vllm":
        accepted = sum(whole["metrics"]["speculative_decoding"]["per_step_accepted"])
    else:
        accepted = whole["timings"]["draft_n_accepted"]
    assert done.text == whole["choices"][0]["message"]["content"]
    assert len(done.token_ids) == tokens
    assert done.steps == tokens - accepted < tokens
    assert sum(done.pass_tokens or [len(step.token_ids) for step in talk.steps]) == tokens
    assert done.server is not None and (done.server.tokens, done.server.accepted) == (tokens, accepted)


async def test_a_stop_is_one_at_the_server(server: Server) -> None:
    async with server.talk() as talk:
        talk.ask("Write a very long story about a lighthouse.", most=LONG)
        await talk.events.until(Step, 3)
        assert await asyncio.to_thread(server.at_work) == 1
        talk.send(Stop())
        done = await talk.events.until(TurnFinished)
    assert done.reason == "stopped" and done.text
    await until(lambda: server.at_work() == 0)


async def test_two_conversations_at_once_write_what_each_writes_alone(server: Server) -> None:
    alone = [server.whole(one)["choices"][0]["message"]["content"] for one in (QUESTION, OTHER)]
    async with server.talk() as first, server.talk() as second:
        both = await asyncio.gather(first.answer(QUESTION, most=TOKENS), second.answer(OTHER, most=TOKENS))
    assert [done.text for done in both] == alone


async def test_a_server_that_is_killed_in_mid_answer_and_comes_back_answers_again(server: Server) -> None:
    async with server.talk() as talk:
        talk.ask(QUESTION, most=LONG)
        await talk.events.until(Step, 3)
        server.kill()
        failure, done = await talk.events.until(Failed), await talk.events.until(TurnFinished)
        assert not failure.fatal and failure.turn == done.turn
        assert done.reason == "stopped" and done.text
        await asyncio.to_thread(server.start)
        again = await talk.answer(QUESTION, most=TOKENS)
    assert again.text.startswith(done.text[: len(again.text)]) or done.text.startswith(again.text)
