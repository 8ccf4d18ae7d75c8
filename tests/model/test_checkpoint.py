"""What is no checkpoint is refused in one sentence, with a way out, before torch is even imported."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import huggingface_hub
import pytest
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

from ladechat.model.checkpoint import (
    DEMO,
    WANTED_FILES,
    LoadError,
    LoadErrorCode,
    fetch,
    local_folder,
    tokenizer_fingerprint,
)
from tests.model.refusals import assert_told
from tests.tiny import DEMO as DEMO_FOLDER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that has all that `fetch` asks for, and nothing that could be loaded."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


def refusal(name: str) -> LoadError:
    with pytest.raises(LoadError) as caught:
        fetch(name)
    return caught.value


def test_the_bundled_model_is_found_by_its_name() -> None:
    assert fetch(DEMO).samefile(DEMO_FOLDER)


def test_a_folder_is_found_by_its_path(folder: Path) -> None:
    assert fetch(str(folder)) == folder


def test_a_tilde_is_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert local_folder(f"~/{folder.name}") == folder


@pytest.mark.parametrize(
    "name", ["/no/such/folder", "./missing", "../missing", "~/missing", "a/b/c", "missing", "a/b/"]
)
def test_a_path_without_a_folder_is_refused_and_no_hub_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*args: object, **options: object) -> str:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", ask)
    assert_told(refusal(name), "model_not_found", f"no folder {name}")


def test_a_folder_without_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert_told(refusal(str(folder)), "model_not_found", "no config.json")


@pytest.mark.parametrize("file", ["pytorch_model.bin", "consolidated.00.pth", "model.pt", "last.ckpt"])
def test_weights_that_can_run_code_are_refused_by_name(folder: Path, file: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / file).write_bytes(b"")
    error = refusal(str(folder))
    assert_told(error, "no_safetensors", file)
    assert "save_pretrained" in error.hint


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert_told(refusal(str(folder)), "no_safetensors", "no weights")


def answering(result: Path | Exception, asked: list[tuple[str, object]]) -> Callable[..., str]:
    """A hub that answers so, and notes what it was asked."""

    def snapshot_download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        if isinstance(result, Exception):
            raise result
        return str(result)

    return snapshot_download


def test_a_hub_id_is_downloaded_without_pickles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, object]] = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", answering(folder, asked))
    assert fetch("owner/model") == folder
    assert asked == [("owner/model", list(WANTED_FILES))]
    assert not any(
        Path(name).match(pattern) for name in ("pytorch_model.bin", "a.pth", "x.py") for pattern in WANTED_FILES
    )


def test_a_download_without_safetensors_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "model.safetensors").unlink()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", answering(folder, []))
    assert_told(refusal("owner/model"), "no_safetensors", "owner/model has no *.safetensors")


RESPONSE = httpx.Response(403, request=httpx.Request("GET", "https://example.invalid/owner/model"))


@pytest.mark.parametrize(
    ("raised", "code", "says", "hint"),
    [
        (GatedRepoError("gated", response=RESPONSE), "model_not_found", "granted by its owners", "hf auth login"),
        (RepositoryNotFoundError("no", response=RESPONSE), "model_not_found", "no model owner/model", "spelling"),
        (LocalEntryNotFoundError("offline"), "model_not_found", "hub cannot be reached", "network"),
        (ConnectionError("no route"), "model_not_found", "hub cannot be reached", "network"),
        (httpx.ConnectError("no route"), "model_not_found", "hub cannot be reached", "network"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_the_hub_answers_is_told_in_one_sentence(
    raised: Exception, code: LoadErrorCode, says: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", answering(raised, []))
    error = refusal("owner/model")
    assert_told(error, code, says)
    assert hint in error.hint


def test_a_model_that_is_not_cached_is_told_of_without_a_network() -> None:
    """The tests run with the hub switched off."""
    assert_told(refusal("nobody/nothing"), "model_not_found", "nobody/nothing is not on this machine")


@pytest.mark.parametrize("name", ["owner/has space", "owner/-x-", "a--b/c"])
def test_a_name_that_no_hub_allows_is_refused(name: str) -> None:
    assert_told(refusal(name), "model_not_found", f"no model {name}")


def test_equal_tokenizers_have_equal_fingerprints(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder, text in zip(folders, ["one", "one", "two"], strict=True):
        folder.mkdir()
        (folder / "tokenizer.json").write_text(text)
    first, second, third = map(tokenizer_fingerprint, folders)
    assert first == second != third


def test_a_folder_without_a_tokenizer_has_no_fingerprint(tmp_path: Path) -> None:
    assert tokenizer_fingerprint(tmp_path) is None


def test_finding_a_checkpoint_needs_no_torch() -> None:
    code = (
        "import sys; from ladechat.model.checkpoint import fetch; fetch('demo'); "
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
