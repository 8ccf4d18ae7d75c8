"""Before a model is shared among processes: what cannot be is refused in one sentence."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from ladechat.model.checkpoint.files import LoadErrorCode
from ladechat.model.parallel import shards
from ladechat.model.parallel.shards import check_copies, check_shards, devices_for, share_of_each
from tests.model.refusals import assert_refused
from tests.tiny import SHAPE, random_model

EVEN = {**SHAPE, "vocab_size": 96}


@pytest.fixture(autouse=True)
def _with_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "is_accelerate_available", lambda: True)


def check(folder: Path, processes: int, model_type: str = "llama", cache_bytes: int = 0, **changes: Any) -> None:
    config = AutoConfig.for_model(model_type, **{**EVEN, **changes})
    check_shards(folder, "the model", config, [torch.device("cpu")] * processes, torch.float32, cache_bytes)


def test_a_model_whose_heads_can_be_divided_is_not_refused(tmp_path: Path) -> None:
    check(tmp_path, 2)


@pytest.mark.parametrize(
    ("processes", "changes", "says"),
    [
        (3, {}, "4 attention heads, which cannot be divided among 3 processes"),
        (4, {}, "2 key/value heads, which"),
        (2, {"vocab_size": 97}, "97 tokens in its vocabulary, which"),
        (2, {"intermediate_size": 49}, "49 inner columns in a layer, which"),
    ],
)
def test_what_cannot_be_divided_is_refused_by_its_number(
    processes: int, changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    assert_refused(lambda: check(tmp_path, processes, **changes), "load_failed", says)


@pytest.mark.parametrize(
    ("model_type", "changes", "code", "says"),
    [
        ("gpt2", {}, "unsupported_architecture", "no plan how to share a model of type 'gpt2'"),
        ("doge", {}, "unsupported_architecture", "a model of type 'doge' does not compute what it should"),
        ("llama", {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "load_failed", "shares plain weights"),
    ],
)
def test_a_model_that_cannot_be_shared_is_refused(
    model_type: str, changes: dict[str, Any], code: LoadErrorCode, says: str, tmp_path: Path
) -> None:
    assert_refused(lambda: check(tmp_path, 2, model_type, **changes), code, says)


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shards, "is_accelerate_available", lambda: False)
    assert "accelerate<" in assert_refused(lambda: check(tmp_path, 2), "missing_package", "accelerate").hint


def test_shards_that_do_not_fit_are_refused_by_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random_model(0, vocab_size=96).save_pretrained(tmp_path)
    bytes_of_all = 4 * random_model(0, vocab_size=96).num_parameters()
    monkeypatch.setattr(shards, "free_memory", lambda device: bytes_of_all)
    # On a CPU both have the embeddings, in one memory.
    assert_refused(lambda: check(tmp_path, 2), "out_of_memory", "2 shards")
    monkeypatch.setattr(shards, "free_memory", lambda device: 2 * bytes_of_all)
    check(tmp_path, 2)
    assert_refused(lambda: check(tmp_path, 2, cache_bytes=2 * bytes_of_all), "out_of_memory", "2 shards")


def test_copies_that_do_not_fit_are_refused_by_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, two = random_model(0, vocab_size=96), [torch.device("cpu")] * 2
    model.save_pretrained(tmp_path)
    option, bytes_of_all = "--lookahead-parallel", 4 * model.num_parameters()
    refused = partial(check_copies, tmp_path, "the model", model.config, two, torch.float32, 8, option)
    monkeypatch.setattr(shards, "free_memory", lambda device: 2 * bytes_of_all)
    assert "--tensor-parallel" in assert_refused(refused, "out_of_memory", "2 copies").hint
    monkeypatch.setattr(shards, "free_memory", lambda device: 2 * bytes_of_all + 16)
    refused()
    config = AutoConfig.for_model("llama", **EVEN, quantization_config={"quant_method": "gptq", "bits": 4})
    refused = partial(check_copies, tmp_path, "the model", config, two, torch.float32, 8, option)
    assert_refused(refused, "load_failed", "--lookahead-parallel shares plain weights")


def test_each_process_holds_its_part_of_the_layers_and_the_whole_of_what_no_plan_shares() -> None:
    model = random_model(0, vocab_size=96)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    splits_embeddings = any("embed_tokens" in name for name in model.tp_plan)
    parts = ["norm"] if splits_embeddings else ["norm", "embed_tokens"]
    whole = sum(size for name, size in sizes.items() if any(part in name for part in parts))
    expected = (whole + (sum(sizes.values()) - whole) / 2) / sum(sizes.values())
    assert share_of_each(model.config, 2) == pytest.approx(expected)
    assert share_of_each(model.config, 1) == 1


@pytest.mark.parametrize("wanted", ["mps", "cuda:1"])
def test_a_device_that_is_no_group_of_gpus_is_refused(wanted: str) -> None:
    assert_refused(lambda: devices_for(2, wanted, shards.OPTION), "load_failed", f"'{wanted}' does not name those")


@pytest.mark.parametrize(("found", "says"), [(0, "there is none here"), (1, "is one here"), (3, "there are 3 here")])
def test_fewer_gpus_than_asked_for_are_told_with_how_many_there_are(
    found: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found)
    for wanted in ("auto", "cuda"):
        assert_refused(partial(devices_for, 4, wanted, shards.OPTION), "load_failed", says)


def test_each_process_has_a_gpu_of_its_own_and_on_a_cpu_all_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert devices_for(2, "auto", shards.OPTION) == [torch.device("cuda", 0), torch.device("cuda", 1)]
    assert devices_for(2, "cpu", shards.OPTION) == [torch.device("cpu"), torch.device("cpu")]


def test_the_processes_meet_in_a_file_that_no_other_user_can_open(tmp_path: Path) -> None:
    place = shards.meeting_place(tmp_path / "groups")
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert shards.meeting_place(tmp_path / "groups") != place
    old, new = tmp_path / "groups" / "old", tmp_path / "groups" / "new"
    for file in (old, new):
        file.write_text("")
    os.utime(old, (0, 0))
    shards.meeting_place(tmp_path / "groups")
    assert new.exists() and not old.exists()


def test_where_others_could_reach_the_processes_the_model_is_not_shared(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    says = "can be written to by others"
    assert_refused(lambda: shards.meeting_place(tmp_path / "open"), "load_failed", says)
