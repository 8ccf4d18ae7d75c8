"""Libraries that cannot be imported are a sentence, in the engine, in `bench`, in `tune` and in `train`."""

import errno
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from ladechat.engine.failures import or_say_why_not
from ladechat.model.checkpoint import faults
from ladechat.model.checkpoint.faults import import_libraries
from ladechat.model.checkpoint.files import LoadError
from ladechat.protocol import Failed
from ladechat.shell import cli


class Broken:
    """Finds one library, which fails while it is imported."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "broken_library":
            raise self.error
        return None


MISSING = "libtorch_cpu.so: cannot open shared object file"
ERRORS = [
    ImportError(f"What failed:\n{MISSING}."),
    OSError(MISSING),
    RuntimeError(MISSING),
    ModuleNotFoundError(MISSING),
    ImportError(f"a.so: failed to map segment from shared object: Operation not permitted\n{MISSING}"),
    ImportError(f"a.so: failed to map segment from shared object: Permission denied\n{MISSING}"),
    ImportError(f"libgomp.so.1: cannot allocate memory in static TLS block\n{MISSING}"),
]


def break_library(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "LIBRARIES", ("broken_library",))
    monkeypatch.setattr(sys, "meta_path", [Broken(error), *sys.meta_path])


@pytest.fixture(params=ERRORS, ids=lambda error: type(error).__name__)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    break_library(request.param, monkeypatch)


@pytest.mark.usefixtures("broken")
def test_why_a_library_cannot_be_imported_is_the_last_line_of_what_it_says() -> None:
    with pytest.raises(LoadError) as caught:
        import_libraries()
    assert str(caught.value) == f"broken_library cannot be imported: {MISSING}."
    assert "docs/installing.md" in caught.value.hint


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        MemoryError(),
    ],
    ids=str,
)
def test_a_library_that_does_not_fit_in_memory_is_not_to_be_installed_anew(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_library(error, monkeypatch)
    with pytest.raises(LoadError, match="not enough memory to import broken_library") as caught:
        import_libraries()
    assert caught.value.code == "out_of_memory" and "ulimit -v" in caught.value.hint


@pytest.mark.parametrize("before", ["", "What failed: "])
def test_a_library_on_a_disk_from_which_no_program_runs_is_no_matter_of_memory(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The linker gives the same reason for both: none."""
    (library := tmp_path / "a b" / "libtorch.so").parent.mkdir()
    library.touch()
    break_library(OSError(f"{before}{library}: failed to map segment from shared object"), monkeypatch)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC if path == library else 0))
    with pytest.raises(LoadError, match=f"{library} is on a disk from which no program runs .noexec.") as caught:
        import_libraries()
    assert caught.value.code == "load_failed" and "another disk" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("TORCH_LOGS", "garbage", ValueError("\nInvalid log settings: garbage, must be a list.\nValid: all, aot")),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "abc", ValueError("invalid literal for int() with base 10: 'abc'")),
    ],
)
def test_a_variable_that_a_library_refuses_is_named(
    name: str, value: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_SOMETHING", "1")
    break_library(error, monkeypatch)
    with pytest.raises(LoadError, match=f"broken_library cannot be imported with {name}={value} in") as caught:
        import_libraries()
    assert "Unset that variable" in caught.value.hint


@pytest.mark.usefixtures("broken")
def test_the_engine_says_it_in_the_stream_and_its_log_has_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[Failed] = []

    def work() -> int:
        import_libraries()
        return 0

    assert or_say_why_not(work, said.append) == 1
    assert MISSING in said[0].message and said[0].fatal
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("command", [["bench"], ["tune"], ["train", "transfer", "--out", "maps.safetensors"]])
def test_what_measures_or_trains_says_it_in_a_sentence(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 1
    assert result.stderr.strip().count("\n") == 0 and MISSING in result.stderr
