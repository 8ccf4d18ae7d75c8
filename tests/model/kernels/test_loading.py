"""What is executed is what was built here. A library that is damaged or crashes costs the kernels, not the model."""

import ctypes
import errno
import faulthandler
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.library import crash_remembered, load_library
from tests.model.compiled import script

CRASHES = "__attribute__((constructor)) static void crash() { __builtin_trap(); }"
EMPTY = 'extern "C" int nothing() { return 0; }'

Prepare = Callable[[str | Path], Build]


@pytest.fixture
def build_of(tmp_path: Path, build_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """A build by a compiler that always makes this library: one of some source text, or a copy of a file."""

    def prepare(wanted: str | Path) -> Build:
        library = tmp_path / "made.so"
        if isinstance(wanted, Path):
            shutil.copy(wanted, library)
        else:
            (tmp_path / "source.cpp").write_text(wanted)
            real = shutil.which("g++") or shutil.which("clang++")
            assert real is not None
            subprocess.run([real, "-shared", "-fPIC", str(tmp_path / "source.cpp"), "-o", str(library)], check=True)
        copies = script(tmp_path / "compiler", f'while [ "$1" != -o ]; do shift; done\ncp {library} "$2"')
        monkeypatch.setenv("CXX", str(copies))
        return Build(tmp_path / "cache")

    return prepare


def why_torch_goes_on(build: Build) -> str:
    """Why there are no kernels."""
    with pytest.raises(BuildError) as refused:
        load_library(build, threads=1)
    return str(refused.value)


def load_quietly(build: Build) -> None:
    """Load the kernels; a crash prints nothing among the results of the tests."""
    faulthandler.disable()
    load_library(build, 1)


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda content: content + b"more"])
def test_a_library_that_was_cut_off_or_changed_is_not_loaded_but_built_anew(
    damage: Callable[[bytes], bytes], build_of: Prepare, build_path: Path, tmp_path: Path
) -> None:
    whole = build_of(build_path).library()
    whole.write_bytes(damage(whole.read_bytes()))
    again = Build(tmp_path / "cache").library()
    assert again.read_bytes() == build_path.read_bytes()
    assert list(again.parent.glob("*.so")) == [again]


def test_a_library_without_our_functions_is_built_anew(build_of: Prepare, build_path: Path, tmp_path: Path) -> None:
    build = build_of(EMPTY)
    build.library()
    shutil.copy(build_path, tmp_path / "made.so")
    assert load_library(build, 1).is_right()


def test_a_folder_in_which_nothing_can_be_locked_is_no_reason_to_build_anew(
    build_of: Prepare, build_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = build_of(build_path)
    monkeypatch.setattr(build, "rebuilt", lambda: pytest.fail("It is built anew."))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(BuildError, match="No locks available"):
        load_library(build, 1)


@pytest.mark.parametrize("source", [EMPTY, "text"], ids=["no functions", "no library"])
def test_where_no_library_of_ours_can_be_built_torch_goes_on_and_a_sentence_says_why(
    source: str, build_of: Prepare, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("no library")
    assert "another library than ours" in why_torch_goes_on(build_of(text if source == "text" else source))


def test_a_library_that_has_crashed_twice_while_it_was_loaded_is_not_loaded_again_and_torch_goes_on(
    build_of: Prepare, tmp_path: Path
) -> None:
    build = build_of(CRASHES)
    build.library()
    for _ in range(2):
        process = get_context("fork").Process(target=load_quietly, args=[build])
        process.start()
        process.join()
        assert process.exitcode is not None and process.exitcode < 0  # by a signal
    says = why_torch_goes_on(Build(tmp_path / "cache"))
    assert "They have twice ended a program" in says
    (note,) = (tmp_path / "cache").glob("*.loading")
    assert str(note) in says  # which says what to remove


def test_a_library_that_another_process_loads_at_this_moment_has_not_crashed(build_path: Path) -> None:
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        with crash_remembered(build_path):
            os.write(writes, b"!")
            ctypes.CDLL(str(build_path))
        os._exit(0)
    os.read(reads, 1)
    with crash_remembered(build_path):
        pass
    assert os.waitpid(child, 0)[1] == 0
    os.close(reads)
    os.close(writes)


def test_a_process_that_was_killed_by_somebody_while_it_loaded_switches_nothing_off(build_path: Path) -> None:
    for _ in range(3):
        child = os.fork()
        if not child:
            with crash_remembered(build_path):
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        with crash_remembered(build_path):  # it is loaded, so it does not crash, and the next one counts from 0
            pass


def test_loading_that_is_interrupted_is_no_crash(build_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), crash_remembered(build_path):
        raise KeyboardInterrupt
    with crash_remembered(build_path):
        pass


def test_libraries_in_a_folder_that_others_can_write_to_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert "open can be written to by others" in why_torch_goes_on(Build(tmp_path / "open"))
    assert list((tmp_path / "open").iterdir()) == []
