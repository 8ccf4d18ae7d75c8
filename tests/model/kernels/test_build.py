"""The library is built once for a machine, whole or not at all; what went wrong is said in a sentence."""

import contextlib
import sys
import threading
from pathlib import Path

import pytest

from ladechat.model.kernels import build as module
from ladechat.model.kernels.build import MOST_LIBRARIES, Build, BuildError, built, compiler
from ladechat.model.load import load
from ladechat.private_folder import NotPrivate
from tests.llama2 import save_checkpoint
from tests.model.compiled import script


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that writes some file at once, and counts how often it was called; and an empty folder for it."""
    (tmp_path / "cache").mkdir(mode=0o700)
    calls = tmp_path / "calls"
    compiler = script(tmp_path / "compiler", f'echo >> {calls}\nwhile [ "$1" != -o ]; do shift; done\necho lib > "$2"')
    monkeypatch.setenv("CXX", str(compiler))
    return calls


def use_only(programs: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a Linux with no other programs than these."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    for name in programs:
        script(folder / name, "exit 0")
    monkeypatch.setenv("PATH", str(folder))


def test_what_was_built_is_found_again(tmp_path: Path, pretended: Path) -> None:
    folder = tmp_path / "cache"
    library = built(folder)
    assert built(folder) == library and Build(folder).library() == library
    assert pretended.read_text().count("\n") == 1
    assert [path.name for path in folder.iterdir()] == [library.name]


def test_a_library_is_looked_for_without_a_build(tmp_path: Path, pretended: Path) -> None:
    before = Build(tmp_path / "cache")
    before.find()
    assert not before.finished and not pretended.exists()
    library = Build(tmp_path / "cache").library()
    after = Build(tmp_path / "cache")
    after.find()
    assert after.finished and after.library() == library and len(pretended.read_text().split("\n")) == 2


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
    processors = [f"processor-{number}" for number in range(MOST_LIBRARIES + 3)]
    for processor in processors:
        library = built(tmp_path / "cache", processor)
    assert pretended.exists()
    left = list((tmp_path / "cache").iterdir())
    assert len(left) == MOST_LIBRARIES and library in left


def test_two_that_build_at_once_both_get_a_whole_library(tmp_path: Path, pretended: Path) -> None:
    builds = [Build(tmp_path / "cache") for _ in range(2)]
    assert {build.library().read_text() for build in builds} == {"lib\n"} and pretended.exists()


@pytest.mark.parametrize(
    ("compiler", "says"),
    [
        ("no compiler", "There is no C\\+\\+ compiler"),
        (sys.executable, "refused the kernels"),
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


def test_a_compiler_that_refuses_the_kernels_is_quoted_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = "echo 'In file included from x:'; echo 'x.h:3: fatal error: no such header'; echo '  3 | ^~~~'; exit 1"
    monkeypatch.setenv("CXX", str(script(tmp_path / "refuses", f"{{ {says}; }} >&2")))
    with pytest.raises(BuildError, match=r"refuses refused the kernels: x\.h:3: fatal error: no such header$"):
        Build(tmp_path / "cache").library()


@pytest.mark.parametrize(
    ("there", "named", "expected"),
    [
        (["g++", "clang++", "c++"], "", "g++"),
        (["clang++", "c++"], "", "clang++"),
        (["c++"], "", "c++"),
        (["g++", "clang++"], "clang++", "clang++"),
        (["ccache", "g++"], "ccache g++", "ccache g++"),
        (["g++"], "g++ -m64 '-DNAME=a b'", "g++ -m64 -DNAME=a b"),
        (["my compiler"], "my compiler", "my compiler"),
        (["c++"], "  ", "c++"),
    ],
)
def test_the_compiler_is_the_one_in_cxx_with_its_options_or_the_first_usual_one(
    there: list[str], named: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_only(there, tmp_path, monkeypatch)
    monkeypatch.setenv("CXX", named)
    program, *options = compiler()
    assert " ".join((program.removeprefix(f"{tmp_path}/"), *options)) == expected


@pytest.mark.parametrize(
    ("there", "named", "says"),
    [
        ([], "", r"There is no C\+\+ compiler: install one \(on Debian"),
        (["g++"], "icpx", r"There is no C\+\+ compiler icpx, which CXX names"),
        (["g++"], "g++ '", r"There is no C\+\+ compiler g\+\+ ', which CXX names"),
    ],
)
def test_without_a_compiler_a_sentence_says_what_to_install_or_which_one_is_missing(
    there: list[str], named: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_only(there, tmp_path, monkeypatch)
    monkeypatch.setenv("CXX", named)
    with pytest.raises(BuildError, match=says):
        compiler()


@pytest.mark.parametrize(("status", "installed"), [(0, True), (2, False)])
def test_on_macos_the_program_that_only_offers_to_install_a_compiler_is_not_run(
    status: int, installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("CXX", "clang++")
    script(tmp_path / "xcode-select", f"exit {status}")
    monkeypatch.setenv("PATH", str(tmp_path))
    if installed:
        assert compiler() == ["/usr/bin/clang++"]
    else:
        with pytest.raises(BuildError):
            compiler()


def test_where_nothing_can_be_executed_no_compiler_runs(
    pretended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> Path:
        raise NotPrivate(f"the disk of {name} runs no program.")

    monkeypatch.setattr(module, "executable_folder", refuse)
    with pytest.raises(BuildError, match="the disk of kernels runs no program"):
        Build().library()
    assert not pretended.exists()


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
