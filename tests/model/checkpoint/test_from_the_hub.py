"""A Llama-2-style checkpoint goes the whole way: from a hub, through an engine process, to its own greedy text."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from ladechat.protocol import Loading, Message, Ready, Settings, TurnStarted
from tests.engine.forked import Forked
from tests.engine.wire import Wire, refused
from tests.hub_server import HubServer, running_hub
from tests.llama2 import files_of, save_checkpoint
from tests.tiny import generated

NAME = "owner/tiny-llama-2-chat"


@pytest.fixture
def hub_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub for programs that are started: they read where it is in their environment."""
    with running_hub() as hub:
        for key, value in hub.environment(tmp_path / "home").items():
            monkeypatch.setenv(key, value)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub


@pytest.mark.parametrize(
    "shard_size", [pytest.param("50KB", id="shards", marks=pytest.mark.full), pytest.param("5GB", id="one file")]
)
def test_a_checkpoint_like_llama_2_answers_what_transformers_would(
    hub: HubServer, tmp_path: Path, shard_size: str
) -> None:
    folder = save_checkpoint(tmp_path / "original", max_shard_size=shard_size)
    hub.add(NAME, {**files_of(folder), "pytorch_model.bin": b"never fetched"})
    assert (len(list(folder.glob("*.safetensors"))) > 1) == (shard_size == "50KB")
    wire = Forked(NAME, "float32", Settings(decoder="lookahead"))
    ready = wire.until(Ready)
    downloaded = [event for event in wire.seen if isinstance(event, Loading) and event.total_bytes]
    weights = sum(len(data) for file, data in files_of(folder).items() if file.endswith(".safetensors"))
    assert (downloaded[-1].done_bytes, downloaded[-1].total_bytes, downloaded[-1].stage) == (weights, weights, 1)
    assert hub.fetched(".bin") == []
    assert (ready.model, ready.model_type, ready.context_length) == (NAME, "llama", 4096)
    assert (ready.chat_template, ready.quantization, ready.dtype) == ("checkpoint", None, "float32")
    assert ready.sampling_defaults is not None and ready.sampling_defaults.do_sample
    assert (ready.sampling_defaults.temperature, ready.sampling_defaults.top_p) == (0.6, 0.9)
    said = [Message(role="system", content="Be brief."), Message(role="user", content="the cat")]
    steps, end = wire.ask(*said, max_new_tokens=40)
    prompt = next(event.prompt_ids for event in wire.seen if isinstance(event, TurnStarted))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert end.token_ids == generated(model, prompt, 40)
    assert any(step.draft is not None for step in steps)
    wire.close()


def test_an_engine_that_was_killed_in_a_download_goes_on_where_it_ended(
    hub_of_programs: HubServer, tmp_path: Path
) -> None:
    folder = save_checkpoint(tmp_path / "original")
    hub_of_programs.add(NAME, files_of(folder))
    hub_of_programs.faults.hold_after = 100_000
    first = Wire("--model", NAME)
    first.until(Loading, lambda event: event.done_bytes == 100_000)
    first.close()
    hub_of_programs.faults.release.set()
    second = Wire("--model", NAME)
    second.until(Loading, lambda event: event.stage == 2)
    second.close()
    assert hub_of_programs.ranges() == [None, "bytes=100000-"]
    [fetched] = (tmp_path / "home").glob("hub/models--*/snapshots/*/model.safetensors")
    assert fetched.read_bytes() == (folder / "model.safetensors").read_bytes()


def test_an_engine_whose_hub_refuses_says_so_in_one_event_and_ends(hub_of_programs: HubServer, tmp_path: Path) -> None:
    hub_of_programs.add(NAME, {"config.json": b"{}", "model.safetensors": b""}, token="secret", gated=True)
    failed = refused("--model", NAME)
    assert failed.code == "gated"
    assert f"{hub_of_programs.url}/{NAME}" in failed.hint and "hf auth login" in failed.hint
