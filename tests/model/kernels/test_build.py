"""The library is built once for a machine, whole or not at all; what went wrong is said in a sentence."""

import contextlib
import sys
import threading
from pathlib import Path

import pytest

from ladechat.model.kernels import build as module
from ladechat.model.kernels.build import LIBRARIES_KEPT, Build, BuildError, built
from ladechat.model.load import load
from tests.llama2 import save_checkpoint


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that writes some file at once, and counts how often it was called; and an empty folder for it."""
    (tmp_path / "cache").mkdir(mode=0o700)
    calls = tmp_path / "calls"
    compiler = script(tmp_path / "compiler", f'echo >> {calls}\nwhile [ "$1" != -o ]; do shift; done\necho lib > "$2"')
    monkeypatch.setenv("CXX", str(compiler))
    return calls


def test_what_was_built_is_found_again(tmp_path: Path, pretended: Path) -> None:
    folder = tmp_path / "cache"
    library = built(folder)
    assert built(folder) == library and Build(folder).library() == library
    assert pretended.read_text().count("\n") == 1
    assert [path.name for path in folder.iterdir()] == [library.name]


def test_other_sources_and_other_processors_have_libraries_of_their_own(
    tmp_path: Path, pretended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = {built(tmp_path / "cache"), built(tmp_path / "cache", "haswell")}
    changed = tmp_path / "changed.cpp"
    changed.write_text("int answer() { return 42; }", encoding="utf-8")
    monkeypatch.setattr(module, "SOURCES", [*module.SOURCES, changed])
    libraries.add(built(tmp_path / "cache"))
    monkeypatch.setattr(module, "_processor", lambda: "another one")
    libraries.add(built(tmp_path / "cache"))
    assert len(libraries) == 4 and pretended.exists()


def test_libraries_that_were_not_used_lately_are_deleted(tmp_path: Path, pretended: Path) -> None:
    processors = [f"processor-{number}" for number in range(LIBRARIES_KEPT + 3)]
    for processor in processors:
        library = built(tmp_path / "cache", processor)
    assert pretended.exists()
    left = list((tmp_path / "cache").iterdir())
    assert len(left) == LIBRARIES_KEPT and library in left


def test_two_that_build_at_once_both_get_a_whole_library(tmp_path: Path, pretended: Path) -> None:
    builds = [Build(tmp_path / "cache") for _ in range(2)]
    assert {build.library().read_text() for build in builds} == {"lib\n"} and pretended.exists()


@pytest.mark.parametrize(
    ("compiler", "says"),
    [
        ("no compiler", "There is no C\\+\\+ compiler"),
        (sys.executable, "The C\\+\\+ compiler refused the kernels"),
        ("kill -9 $$", "ended by signal 9"),
    ],
)
def test_a_compiler_that_is_missing_or_fails_is_told_of(
    compiler: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiler.startswith("kill"):
        compiler = str(script(tmp_path / "killed", compiler))
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(BuildError, match=says):
        Build(tmp_path / "cache").library()
    assert not any((tmp_path / "cache").glob("*"))


def test_a_folder_that_cannot_be_written_to_is_told_of(tmp_path: Path, pretended: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="cannot be built"):
        Build(tmp_path / "file").library()
    assert not pretended.exists()


def test_an_engine_need_not_wait_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(module, "built", lambda *_: go_on.wait(60) and tmp_path)
    build = Build(tmp_path)
    go_on.set()
    assert build.library() == tmp_path


@pytest.mark.parametrize(
    ("dtype", "device", "wanted"),
    [("float32", "cpu", True), ("auto", "cpu", True), ("bfloat16", "cpu", False), ("float32", "meta", False)],
)
def test_kernels_are_built_for_a_model_that_they_compute_and_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, device: str, wanted: bool
) -> None:
    """Another device stands for a GPU: whatever comes of it, no compiler runs."""
    begun: list[Path] = []

    def no_library(folder: Path, _: str) -> Path:
        begun.append(folder)
        raise BuildError("not in this test")

    monkeypatch.setattr("ladechat.model.kernels.build.built", no_library)
    with contextlib.suppress(Exception):
        kernels = Build(tmp_path / "kernels")
        load(save_checkpoint(tmp_path), "tiny", device, dtype, lambda _: None, lambda _: None, kernels=kernels)
    assert bool(begun) == wanted
