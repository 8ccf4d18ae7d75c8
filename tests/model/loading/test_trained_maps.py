"""What was trained for a model is found when it is loaded, or named; what cannot be used is told, and costs nothing."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from ladechat.decoder.hidden import Want
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.loaded import LoadedModel
from ladechat.model.parallel.rank0 import Rank0Runner
from ladechat.model.parallel.sharing import LOGITS_ONLY
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.trained import KINDS, fingerprint, trained_folder, write_trained
from tests.checkpoints import load_on_cpu, save
from tests.engine.tokenizers import byte_level
from tests.forbidden import forbid
from tests.llama2 import save_checkpoint
from tests.made_up_maps import made_up, save_made_up
from tests.model.refusals import assert_refused
from tests.tiny import layered_runner_for, random_model
from tools.tiny_models import tiny_model

DEPTH, WIDTH = 3, 64


def loaded(folder: Path, *maps: Path) -> LoadedModel:
    return load_on_cpu(folder, maps=maps)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return save_checkpoint(tmp_path / "model")


def test_what_lies_beside_the_weights_is_read(folder: Path) -> None:
    save_made_up(folder)
    maps = loaded(folder).maps
    assert set(maps.by_kind) == set(KINDS) and maps.missing == {}
    assert {trained.maps.weights.dtype for trained in maps.by_kind.values()} == {torch.float32}


def test_what_is_not_there_is_told_with_the_command_that_makes_it(folder: Path) -> None:
    maps = loaded(folder).maps
    assert maps.by_kind == {}
    assert maps.missing == {
        kind: f"Nothing was trained for tiny yet; ladechat train {kind} --model tiny --out {kind}.safetensors does it."
        for kind in KINDS
    }


def test_a_named_file_comes_before_one_that_is_found_and_the_last_named_before_others(
    folder: Path, tmp_path: Path
) -> None:
    save_made_up(folder)
    files = []
    for seed in (1, 2):
        files.append(tmp_path / f"{seed}")
        write_trained(files[-1], made_up("transfer", DEPTH, WIDTH, seed, base=fingerprint(folder)))
    by_kind = loaded(folder, *files).maps.by_kind
    assert set(by_kind) == set(KINDS)
    wanted = made_up("transfer", DEPTH, WIDTH, 2).maps.weights.half().float()
    assert torch.equal(by_kind["transfer"].maps.weights, wanted)


@pytest.mark.parametrize("data_folder", [True, False])
def test_a_found_file_that_is_no_good_is_left_out_and_the_log_says_why(
    folder: Path, data_folder: bool, caplog: pytest.LogCaptureFixture
) -> None:
    place = trained_folder(fingerprint(folder)) if data_folder else folder
    medusa, transfer = (place / f"{kind}.safetensors" for kind in ("medusa", "transfer"))
    save_made_up(folder, place)
    transfer.write_bytes(transfer.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        maps = loaded(folder).maps
    transfer.unlink()
    medusa.unlink()
    assert set(maps.by_kind) == {"medusa"} and set(maps.missing) == {"transfer"}
    assert "not all of it is there" in maps.missing["transfer"] and "Copy it again" in maps.missing["transfer"]
    assert maps.missing["transfer"] in caplog.text


def test_a_data_folder_that_may_not_be_searched_keeps_no_model_from_loading_and_the_log_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = trained_folder(fingerprint(folder)).parent
    kept.mkdir(parents=True, exist_ok=True)
    save_made_up(folder)
    (folder / "transfer.safetensors").unlink()
    forbid(monkeypatch, kept)
    with caplog.at_level(logging.WARNING):
        maps = loaded(folder).maps
    assert set(maps.by_kind) == {"medusa"} and set(maps.missing) == {"transfer"}
    assert "transfer.safetensors cannot be read: Permission denied" in maps.missing["transfer"]
    assert str(kept) in maps.missing["transfer"] and maps.missing["transfer"] in caplog.text


def test_a_found_file_of_another_kind_than_its_name_says_is_left_out(folder: Path) -> None:
    transfer, medusa = save_made_up(folder)
    transfer.rename(medusa)
    maps = loaded(folder).maps
    assert maps.by_kind == {} and "Call it transfer.safetensors" in maps.missing["medusa"]


def test_a_named_file_that_is_no_good_is_an_error(folder: Path, tmp_path: Path) -> None:
    save_made_up(folder)
    write_trained(tmp_path / "other", made_up("medusa", DEPTH, WIDTH, base="f" * 32))
    says = "was trained for another model, made up,"
    assert_refused(lambda: loaded(folder, tmp_path / "other"), "load_failed", says)


def test_a_model_whose_layers_cannot_be_called_one_by_one_is_told_of(tmp_path: Path) -> None:
    save(tmp_path, tiny_model("gpt2", vocab_size=len(byte_level())))
    maps = loaded(tmp_path).maps
    assert maps.by_kind == {} and set(maps.missing) == set(KINDS)
    assert all("has no part called" in why for why in maps.missing.values())
    assert_refused(lambda: loaded(tmp_path, tmp_path / "any"), "load_failed", "has no part called embed_tokens")


def test_runners_that_give_logits_alone_say_so() -> None:
    model = random_model(0)
    several = Rank0Runner(layered_runner_for(model), workers=Any)  # type: ignore[arg-type]  # none are needed
    one = SingleTokenRunner(model, 64, "It takes one token a pass.")
    assert (several.capabilities.tree_attention, several.capabilities.logits_only) == (True, LOGITS_ONLY)
    assert one.capabilities.logits_only == "Its passes give logits alone."
    for runner in (several, one):
        with pytest.raises(ValueError, match="logits alone"):
            runner.forward_hidden(SlotTree(5), Want())
