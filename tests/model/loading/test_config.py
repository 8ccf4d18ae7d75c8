"""config.json and the index say what the model is, not which code or which files are used."""

import json
from pathlib import Path

import pytest
import torch
from transformers.integrations import hub_kernels

from ladechat.model.checkpoint.fetch import fetch
from ladechat.model.checkpoint.files import INDEX, LoadError
from tests.model.loading.llama import assert_not_loaded, loaded
from tests.scripted_checkpoint import change


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation", "_experts_implementation"])
@pytest.mark.parametrize("value", ["somebody/kernels", "flash_attention_2"])
def test_an_implementation_that_config_json_names_is_neither_fetched_nor_used(
    checkpoint: Path, key: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise AssertionError("code of a hub was asked for")

    monkeypatch.setattr(hub_kernels, "load_and_register_attn_kernel", load)
    change(checkpoint / "config.json", **{key: value})
    model = loaded(checkpoint).model
    assert model.config._attn_implementation == "sdpa"
    assert model.config._experts_implementation != value


def put_into(folder: Path, file: str) -> None:
    """Let the index name a file for one of the weights."""
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"]["model.norm.weight"] = file
    (folder / INDEX).write_text(json.dumps(index))


@pytest.mark.parametrize(
    "file",
    ["pytorch_model.bin", "../other/model.safetensors", "/model.safetensors", "a/b.safetensors", "..", "", "x\n"],
)
def test_an_index_that_leads_to_other_files_is_refused_before_they_are_read(in_shards: Path, file: str) -> None:
    there = in_shards / file
    if file.endswith(".bin"):
        torch.save({"model.norm.weight": torch.ones(32)}, there)
    put_into(in_shards, file)
    assert_not_loaded(in_shards, "no_safetensors", repr(file))
    with pytest.raises(LoadError, match="only"):
        fetch(str(in_shards), lambda done, total: None)


@pytest.mark.parametrize("file", ["adapter_model.bin", "other.safetensors", "../model.safetensors", 3])
def test_other_files_that_config_json_names_for_the_weights_are_not_read(checkpoint: Path, file: object) -> None:
    change(checkpoint / "config.json", transformers_weights=file)
    assert_not_loaded(checkpoint, "no_safetensors", repr(str(file)))
