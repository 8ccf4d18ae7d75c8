"""Libraries that cannot be imported are a sentence, in the engine, in `bench`, in `tune` and in `train`."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladechat import cli
from ladechat.engine.failures import or_say_why_not
from ladechat.model import libraries
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.libraries import import_libraries
from ladechat.protocol import Failed


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
]


@pytest.fixture(params=ERRORS, ids=lambda error: type(error).__name__)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "LIBRARIES", ("broken_library",))
    monkeypatch.setattr(sys, "meta_path", [Broken(request.param), *sys.meta_path])


@pytest.mark.usefixtures("broken")
def test_why_a_library_cannot_be_imported_is_the_last_line_of_what_it_says() -> None:
    with pytest.raises(LoadError) as caught:
        import_libraries()
    assert str(caught.value) == f"broken_library cannot be imported: {MISSING}."
    assert "docs/installing.md" in caught.value.hint


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
