"""The scripts of benchmarks/ and tools/ still fit the code that they measure."""

import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for folder in ("benchmarks", "tools") for path in (ROOT / folder).rglob("*.py"))
STARTED_BY_OTHERS = ("benchmarks.real_worker", "benchmarks.ui_engine", "tools.installable")


def name_of(script: Path) -> str:
    return ".".join(script.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("script", [name_of(path) for path in SCRIPTS if path.name != "__main__.py"])
def test_every_module_finds_what_it_imports(script: str) -> None:
    import_module(script)


COMMANDS = [name_of(path) for path in SCRIPTS if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
@pytest.mark.parametrize("script", [name for name in COMMANDS if name not in STARTED_BY_OTHERS])
def test_every_command_says_what_it_is_for(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import_module(script)  # what it imports may look for libraries by a process
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.setattr(subprocess, "Popen", None)  # it measures nothing
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(script, run_name="__main__")
    assert not ended.value.code and "--help" in capsys.readouterr().out


def test_modules_that_a_worker_imports_when_it_is_asked_to_are_there() -> None:
    source = (ROOT / "benchmarks" / "real_worker.py").read_text(encoding="utf-8")
    later = [line.split()[1] for line in source.splitlines() if line.startswith("    from ladechat.")]
    assert later
    for name in {*later, *(part.split('"')[0] for part in source.split('import_module("')[1:])}:
        import_module(name)
