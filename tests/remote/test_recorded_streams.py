"""Streams that real servers have sent, byte for byte, as the protocol tells them.

Recorded with SmolLM2-135M-Instruct from vLLM 0.32.0 with n-gram speculation, and without (`plain`); and from the server
of llama.cpp in xllamacpp 2026.10, with n-gram drafts (`drafts`) and without.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ladechat.protocol import TurnFinished
from tests.remote.scripted_server import Reply, ScriptedServer, page, pages_of
from tests.remote.talking import talking

STREAMS = Path(__file__).parent / "streams"
ANSWERS = [path.name for path in sorted(STREAMS.glob("vllm-*.sse")) if "refused" not in path.name]
VLLM = {**pages_of("vllm", "SmolLM2-135M-Instruct", max_model_len=2048), "/version": page({"version": "0.32.0"})}
BYTES_AT_ONCE = 100
"""Fewer than an event has: no event comes in one part."""


def reply(name: str) -> Reply:
    content = (STREAMS / name).read_bytes()
    return Reply([content[begin : begin + BYTES_AT_ONCE] for begin in range(0, len(content), BYTES_AT_ONCE)])


def events(name: str) -> list[Any]:
    lines = (STREAMS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_recorded_answer_of_vllm(name: str) -> None:
    reported = events(name)
    chunks = [choice["token_ids"] for event in reported for choice in event["choices"] if choice.get("token_ids")]
    text = "".join(choice["delta"].get("content") or "" for event in reported for choice in event["choices"])
    speculative = reported[-1].get("metrics", {}).get("speculative_decoding")
    with ScriptedServer(VLLM, reply(name)) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?", most=200)
            assert done.text == text and done.server is not None
            assert [step.token_ids for step in talk.steps] == chunks
            assert len(done.token_ids) == done.server.tokens == reported[-1]["usage"]["completion_tokens"]
            assert talk.started.prompt_ids == reported[0]["prompt_token_ids"]
            if speculative:
                accepted = speculative["per_step_accepted"]
                drafted = [len(step.token_ids) for step in talk.steps[1:] if len(step.token_ids) > 1]
                assert drafted == [count + 1 for count in accepted if count]
                assert done.server.passes == len(talk.steps) and done.pass_tokens == []
                assert (done.server.accepted, done.server.drafted) == (sum(accepted), speculative["num_draft_tokens"])


async def test_log_probabilities_give_each_token_its_text() -> None:
    with ScriptedServer(VLLM, reply("vllm-logprobs.sse")) as server:
        async with talking(server) as talk:
            await talk.answer("Hi?", most=200)
            step = next(one for one in talk.steps if len(one.token_ids) > 1)
            assert step.pieces == ["1", "\n"] and all(-1 < one < 0 for one in step.logprobs)


async def test_a_refusal_in_the_stream_is_a_sentence() -> None:
    with ScriptedServer(VLLM, reply("vllm-refused-in-the-stream.sse")) as server:
        async with talking(server) as talk:
            failed = await talk.failure("Hi?")
            assert "min_p and logit_bias sampling parameters are not yet supported" in failed.message
            assert talk.events.of(TurnFinished) == []


CONTEXT = (
    "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, "
    "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
    "(parameter=input_tokens, value=2049)"
)


async def test_its_words_for_a_full_context_and_for_another_model_are_understood() -> None:
    full = page({"error": {"message": CONTEXT, "type": "BadRequestError", "param": "input_tokens", "code": 400}}, 400)
    other = page({"error": {"message": "The model `another` does not exist.", "param": "model", "code": 404}}, 404)
    with ScriptedServer(VLLM, full, other) as server:
        async with talking(server) as talk:
            assert (await talk.failure("Hi?")).code == "message_too_long"
            assert (await talk.failure("Hi?")).code == "model_not_found"


LLAMA_CPP = pages_of("llamacpp", "SmolLM2-135M-Instruct", meta={"n_ctx": 2048})


@pytest.mark.parametrize("name", [path.name for path in sorted(STREAMS.glob("llama-cpp-*.sse"))])
async def test_a_recorded_answer_of_llama_cpps_server(name: str) -> None:
    sent = events(name)
    text = "".join(choice["delta"].get("content") or "" for event in sent for choice in event["choices"])
    timings = sent[-1]["timings"]
    with ScriptedServer(LLAMA_CPP, reply(name)) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?", most=200)
            assert done.text == text and done.server is not None
            assert len(done.token_ids) == done.server.tokens == timings["predicted_n"]
            assert len(talk.steps) == done.server.passes == timings["predicted_n"] - timings.get("draft_n_accepted", 0)


async def test_tokens_that_llama_cpps_server_accepted_together_are_one_step() -> None:
    with ScriptedServer(LLAMA_CPP, reply("llama-cpp-drafts.sse")) as server:
        async with talking(server) as talk:
            await talk.answer("Hi?", most=200)
            assert [one.pieces for one in talk.steps if len(one.pieces) > 1] == [[" on", " a"]]
            assert [one.drafted for one in talk.steps if len(one.pieces) > 1] == [8]


async def test_its_words_for_a_full_context_are_understood() -> None:
    message = "request (4031 tokens) exceeds the available context size (2048 tokens), try increasing it"
    error = {
        "code": 400,
        "message": message,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 4031,
        "n_ctx": 2048,
    }
    with ScriptedServer(LLAMA_CPP, page({"error": error}, 400)) as server:
        async with talking(server) as talk:
            assert (await talk.failure("Hi?")).code == "message_too_long"
