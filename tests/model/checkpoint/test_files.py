"""What is no checkpoint is refused in one sentence, with a way out, before torch is even imported."""

import errno
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from ladechat.model.checkpoint import hub
from ladechat.model.checkpoint.fetch import fetch
from ladechat.model.checkpoint.files import (
    DEMO,
    LoadError,
    LoadErrorCode,
    in_words,
    local_folder,
    tokenizer_fingerprint,
)
from tests.model.refusals import assert_refused
from tests.tiny import DEMO as DEMO_FOLDER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that has all that `fetch` asks for, and nothing that could be loaded."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


def quiet(done: int, total: int) -> None:
    """For tests that do not look at the bytes."""


def assert_not_found(name: str | Path, code: LoadErrorCode, says: str) -> LoadError:
    return assert_refused(lambda: fetch(str(name), quiet), code, says)


def test_a_folder_is_found_by_its_path_and_the_bundled_model_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fetch(DEMO, quiet).samefile(DEMO_FOLDER)
    assert fetch(str(folder), quiet) == folder
    monkeypatch.setenv("HOME", str(folder.parent))
    assert local_folder(f"~/{folder.name}") == folder


@pytest.mark.parametrize(
    "name", ["/no/such/folder", "./missing", "../missing", "~/missing", "a/b/c", "missing", "a/b/"]
)
def test_a_path_without_a_folder_is_refused_and_no_hub_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "download", lambda *_: pytest.fail("the hub was asked"))
    assert_not_found(name, "model_not_found", f"no folder {name}")


def test_a_file_that_is_no_model_and_a_folder_that_cannot_be_read_are_refused_as_that(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    weights = str(folder / "model.safetensors")
    assert_not_found(weights, "model_not_found", f"{weights} is a file, but no GGUF file")
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert_not_found(folder, "load_failed", f"{folder} cannot be read: Permission denied")


@pytest.mark.parametrize(
    ("file", "code", "says"),
    [("config.json", "model_not_found", "no config.json"), ("model.safetensors", "no_safetensors", "no weights")],
)
def test_a_folder_that_lacks_a_file_is_refused(folder: Path, file: str, code: LoadErrorCode, says: str) -> None:
    (folder / file).unlink()
    assert_not_found(folder, code, says)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "consolidated.00.pth", "model.pt", "last.ckpt"])
def test_weights_that_can_run_code_are_refused_by_name(folder: Path, file: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / file).write_bytes(b"")
    assert "save_pretrained" in assert_not_found(folder, "no_safetensors", file).hint


def test_equal_tokenizers_have_equal_fingerprints_and_none_has_none(tmp_path: Path) -> None:
    assert tokenizer_fingerprint(tmp_path) is None
    folders = [tmp_path / name for name in "abc"]
    for folder, text in zip(folders, ["one", "one", "two"], strict=True):
        folder.mkdir()
        (folder / "tokenizer.json").write_text(text)
    first, second, third = map(tokenizer_fingerprint, folders)
    assert first == second != third


def test_finding_a_checkpoint_needs_no_torch() -> None:
    code = (
        "import sys; from ladechat.model.checkpoint.fetch import fetch; fetch('demo', print); "
        "import ladechat.model.checkpoint.hub; "
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (13_476_831_232, "13.5 GB"), (5_000_000, "5.0 MB")],
)
def test_bytes_are_told_as_disks_are_sold(count: int, words: str) -> None:
    assert in_words(count) == words
