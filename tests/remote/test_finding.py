"""It is found out which program answers at an address, and which model."""

import asyncio

import pytest

from ladechat.protocol import MOST, Loading
from ladechat.remote.faults import ServerFault
from ladechat.server_address import AddressRefused, ServerAddress, is_server, named, parted
from tests.remote.scripted_server import OPENAI, Reply, ScriptedServer, openai_stream, page, pages_of
from tests.remote.talking import talking
from tests.waiting import until

PROPS = page({"build_info": "b11549", "default_generation_settings": {"n_ctx": 512}})
PROGRAMS = {
    "vLLM 0.32.0": {**pages_of("vllm", "tiny", max_model_len=1024), "/version": page({"version": "0.32.0"})},
    "SGLang 0.5.23": {
        **pages_of("sglang", "tiny", max_model_len=2048),
        "/get_server_info": page({"version": "0.5.23"}),
    },
    "llama.cpp b11549": {**pages_of("llamacpp", "tiny", meta={"n_ctx_train": 8192, "n_params": 7}), "/props": PROPS},
    "Ollama 0.14.0": {**pages_of("library", "tiny"), "/api/version": page({"version": "0.14.0"})},
    "LM Studio": pages_of("organization_owner", "tiny"),
    "OpenAI-compatible server": OPENAI,
}


@pytest.mark.parametrize("program", PROGRAMS)
async def test_programs_are_known_by_what_they_say_of_themselves(program: str) -> None:
    with ScriptedServer(PROGRAMS[program]) as server:
        async with talking(server) as talk:
            info = talk.ready.server
            assert info is not None
            assert info.program == program
            assert info.passes == program.startswith(("vLLM", "SGLang", "llama.cpp"))
            lengths = {"vLLM": 1024, "SGLang": 2048, "llama.cpp": 512}
            assert talk.ready.context_length == lengths.get(program.split()[0], MOST)


async def test_a_server_whose_models_have_another_owner_is_known_by_its_own_paths() -> None:
    with ScriptedServer({**OPENAI, "/props": PROPS}) as server:
        async with talking(server) as talk:
            assert talk.ready.server is not None and talk.ready.server.program == "llama.cpp b11549"


async def test_the_only_model_is_taken_and_of_several_one_has_to_be_named() -> None:
    with ScriptedServer(pages_of("vllm", "small", "large")) as server:
        with pytest.raises(ServerFault, match="has 2 models: small, large"):
            async with talking(server):
                pass
        with pytest.raises(ServerFault, match="has no model 'medium'; it has small, large"):
            async with talking(server, model="medium"):
                pass
        async with talking(server, model="large") as talk:
            assert talk.ready.model == "large"


async def test_a_server_that_loads_its_model_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.remote.server.SECONDS_BETWEEN_TRIES", 0.0)
    loads = page({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503)
    with ScriptedServer({**OPENAI, "/v1/models": loads}) as server:

        async def loaded_at_last() -> None:
            async with talking(server) as talk:
                doing = [event.doing for event in talk.events.of(Loading)]
                assert doing[-1].endswith("loads its model")

        waiting = asyncio.create_task(loaded_at_last())
        await until(lambda: len(server.requests) >= 2)
        server.pages["/v1/models"] = OPENAI["/v1/models"]
        await waiting


@pytest.mark.parametrize(
    "reply", [page({"detail": "no"}, 404), Reply([b"<html>"]), Reply([b"{"]), page([1]), page({"data": "none"})]
)
async def test_an_address_without_a_list_of_models_is_refused_in_one_sentence(reply: Reply) -> None:
    with ScriptedServer({"/v1/models": reply}, openai_stream("a")) as server, pytest.raises(ServerFault) as fault:
        async with talking(server):
            pass
    assert fault.value.code == "load_failed" and str(fault.value).count(".") >= 1


def test_addresses_are_written_in_several_ways() -> None:
    for text in ("http://Host:8000", "http://host:8000/", "http://host:8000/v1", "http://host:8000/v1/"):
        address = ServerAddress.of(text)
        assert (address.api, address.root) == ("http://host:8000/v1", "http://host:8000")
    assert ServerAddress.of("https://hub.example/api/v1").root == "https://hub.example/api"
    assert ServerAddress.of("https://x").is_private and not ServerAddress.of("http://x").is_private
    assert ServerAddress.of("http://[::1]:80").is_private and ServerAddress.of("http://localhost").is_private


@pytest.mark.parametrize(
    "text",
    [
        "http://",
        "ftp://host",
        "host:8000",
        "http://host:99999",
        "http://ho st",
        "http://h?q=1",
        "http://h#f",
        "http:/x",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressRefused):
        ServerAddress.of(text)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(AddressRefused) as refused:
        ServerAddress.of("http://me:hunter2@host:8000/v1")
    assert "hunter2" not in str(refused.value) and "LADECHAT_SERVER_KEY" in str(refused.value)


def test_the_name_of_a_model_says_where_it_is() -> None:
    assert named(None, "demo") == "demo" and parted("org/model") == (None, "org/model")
    assert parted(named("http://h/v1", "a/b")) == ("http://h/v1", "a/b")
    assert parted(named("http://h/v1", "")) == ("http://h/v1", "")
    assert is_server("HTTPS://x") and not is_server("httpx")
