"""Whatever a server does wrong is one sentence; what has come of the answer stays, and the next one comes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from ladechat.protocol import Failed, TurnFinished
from ladechat.remote.connection import Patience
from ladechat.remote.faults import waiting_seconds
from tests.remote.scripted_server import (
    CUT,
    HOLD,
    Endless,
    Part,
    Reply,
    ScriptedServer,
    event,
    page,
    vllm_chunk,
    vllm_stream,
)
from tests.remote.talking import IN_VAIN, talking

STREAM = vllm_stream([(1, "A")], [(2, " b")])
BEGUN = STREAM[:2]
ANOTHER = event({**vllm_chunk([(2, " b")]), "model": "another"})


@dataclass(frozen=True)
class Fault:
    """A reply, the words of the sentence, and whether a part of the answer had come before."""

    reply: Reply | Sequence[Part]
    says: str
    begun: bool = False


def error(status: int, message: str = "no", **headers: str) -> Reply:
    return page({"error": {"message": message}}, status, **headers)


BEFORE = {
    "401": Fault(error(401), "wants a key"),
    "404": Fault(error(404, "The model `tiny` does not exist."), "has no model 'tiny'"),
    "429 with its time": Fault(error(429, **{"Retry-After": "12"}), "asks to wait 12 s"),
    "429 without": Fault(error(429), "takes no more requests"),
    "500": Fault(error(500, "CUDA error"), "failed (500: CUDA error)"),
    "502 of a proxy, a page": Fault(Reply([b"<html>Bad gateway</html>"], 502), "failed (502)"),
    "elsewhere": Fault(Reply([], 307, {"Location": "http://other/"}), "sends on to another address"),
    "400": Fault(error(400, "min_p must be in [0, 1]"), "min_p must be in [0, 1]"),
    "wrong content type": Fault(page({"ok": True}), "application/json, not with a stream"),
    "no content type": Fault(Reply([b"hello"], 200, {}), "not with a stream"),
    "nothing": Fault([], "broke the answer off"),
    "an error of 10 MB": Fault(Reply([b"x" * 65_536] * 160, 400, {}), "refuses the request (400)"),
}
AFTER = {
    "a cut stream": Fault([*BEGUN, CUT], "broke off", begun=True),
    "no end": Fault(BEGUN, "broke the answer off before its end", begun=True),
    "half a character": Fault([*BEGUN, b'data: {"choices": "\xe4\xbd"}\n\n'], "cannot be read", begun=True),
    "invalid JSON": Fault([*BEGUN, b'data: {"choices": [\n\n'], "cannot be read", begun=True),
    "deep JSON": Fault([*BEGUN, b"data: " + b"[" * 100_000 + b"\n\n"], "cannot be read", begun=True),
    "a chunk of 10 MB": Fault([*BEGUN, b"data: " + b"x" * 10_000_000 + b"\n\n"], "far too large", begun=True),
    "a long piece": Fault([*BEGUN, event(vllm_chunk([(2, "x" * 200_000)]))], "far too large", begun=True),
    "an error in the stream": Fault([*BEGUN, event({"error": {"message": "engine died"}})], "engine died", begun=True),
}


@pytest.mark.parametrize("name", [*BEFORE, *AFTER])
async def test_each_fault_is_one_sentence_and_keeps_what_has_come(name: str) -> None:
    fault = {**BEFORE, **AFTER}[name]
    with ScriptedServer(None, fault.reply, STREAM) as server:
        async with talking(server) as talk:
            failed = await talk.failure("Hi?")
            assert fault.says in failed.message and "\n" not in failed.message and failed.hint
            assert failed.turn == 1 and not failed.fatal
            if fault.begun:
                done = await talk.events.until(TurnFinished)
                assert (done.reason, done.text) == ("stopped", "A")
            assert (await talk.answer("Hi?")).text == "A b"


@pytest.mark.parametrize("end", [vllm_chunk([(2, " b")]), {"choices": [], "model": "tiny"}], ids=["text", "nothing"])
async def test_an_endless_stream_ends(end: dict[str, object]) -> None:
    with ScriptedServer(None, Reply(Endless(event(end)))) as server:
        async with talking(server) as talk:
            failed = await talk.failure("Hi?", most=8)
            assert "goes on after the 8 tokens" in failed.message


async def test_an_endless_line_ends() -> None:
    with ScriptedServer(None, Reply(Endless(b"data: x" * 10_000))) as server:
        async with talking(server) as talk:
            assert "far too large" in (await talk.failure("Hi?")).message


@pytest.mark.parametrize("begun", [False, True])
async def test_a_stall_ends(begun: bool) -> None:
    patience = replace(IN_VAIN, next=0.05) if begun else replace(IN_VAIN, first=0.05)
    with ScriptedServer(None, [*(BEGUN if begun else []), HOLD]) as server:
        async with talking(server, patience=patience) as talk:
            assert "has sent nothing for 0.05 s" in (await talk.failure("Hi?")).message
            if begun:
                assert (await talk.events.until(TurnFinished)).reason == "stopped"


async def test_another_models_name_is_said_once_and_the_answer_goes_on() -> None:
    with ScriptedServer(None, [ANOTHER, *STREAM[1:]]) as server:
        async with talking(server) as talk:
            done = await talk.answer("Hi?")
            assert done.text == " bA b"
            (said,) = talk.events.of(Failed)
            assert "'another'" in said.message and said.turn is None


async def test_a_refused_connection_is_said_at_the_start() -> None:
    with ScriptedServer() as server:
        pass
    with pytest.raises(Exception, match="cannot be reached"):
        async with talking(server, patience=Patience()):
            pass


async def test_a_key_that_a_server_repeats_is_hidden() -> None:
    key = "sk-geheim-0123456789"
    echo = vllm_chunk([(1, f"You are {key}.")])
    replies = (error(401, f"Incorrect API key provided: {key}"), [event(echo), *STREAM[1:]])
    with ScriptedServer(None, *replies) as server:
        async with talking(server, key=key) as talk:
            failed = await talk.failure("Hi?")
            assert "refuses the key" in failed.message and key not in failed.message
            assert key not in (await talk.answer("Hi?")).text
            assert server.requests[-1].headers["authorization"] == f"Bearer {key}"


def test_the_waiting_time_may_be_a_date() -> None:
    assert waiting_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert waiting_seconds("soon") is None and waiting_seconds("3") == 3.0
