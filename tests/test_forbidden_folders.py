"""Folders that their user may not search cost what is in them, and nothing else."""

from pathlib import Path

import pytest

from ladechat.model.checkpoint import hub
from ladechat.model.checkpoint.fetch import local_files
from ladechat.model.checkpoint.files import LoadError, is_gguf, local_gguf
from ladechat.screens.lists.models import known_models
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recorder import latest_recording
from ladechat.train.command import run
from ladechat.train.options import TrainOptions
from tests.forbidden import forbid
from tests.session.conversations import exchange, write


def cached(cache: Path, name: str) -> Path:
    """The folder of a model in the hub's cache."""
    folder = cache / f"models--owner--{name}"
    version = folder / "snapshots" / "abc"
    version.mkdir(parents=True)
    (version / "config.json").touch()
    (version / "model.safetensors").touch()
    return folder


@pytest.mark.parametrize("listed", [True, False], ids=["its names can be read", "nothing can be read"])
@pytest.mark.parametrize("which", [".", "snapshots", "snapshots/abc"])
def test_a_model_in_a_forbidden_folder_of_the_cache_is_left_out_of_the_list(
    which: str, listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cached(tmp_path, "small")
    forbid(monkeypatch, cached(tmp_path, "hidden") / which, listed=listed)
    assert [one.name for one in known_models(None)] == ["demo", "owner/small"]


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("which", [".", "conversations"])
def test_conversations_and_recordings_in_a_forbidden_folder_are_none(
    which: str, listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "conversations"
    folder.mkdir(parents=True)
    write(folder, "a", exchange("One?"))
    store = ConversationStore(folder)
    assert len(store.conversations()) == 1
    forbid(monkeypatch, folder.parent / which, listed=listed)
    assert store.conversations() == [] and not store.latest
    assert which == "conversations" or latest_recording(folder) is None
    assert next(one.name for one in known_models(store)) == "demo"


@pytest.mark.parametrize("name", ["model", "model.gguf"])
def test_a_model_in_a_forbidden_folder_is_refused_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "forbidden" / name, tmp_path / "transfer.safetensors"
    model.mkdir(parents=True)
    forbid(monkeypatch, model.parent)
    with pytest.raises(LoadError, match="cannot be looked for: Permission denied"):
        local_files(str(model))
    assert is_gguf(model) == (name == "model.gguf") and local_gguf(str(model)) is None
    assert run(TrainOptions("transfer", str(model), "cpu", "float32", out, estimate=True)) == 1
    assert "Permission denied" in capsys.readouterr().err


def test_a_cache_that_cannot_be_searched_keeps_nobody_from_a_model_that_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cached(tmp_path, "small")
    forbid(monkeypatch, folder / "refs")
    hub.find_offline(folder / "snapshots" / "abc")
