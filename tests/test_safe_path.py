"""ladechat, and the programs that it starts, import nothing from the folder that they are started in."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ladechat.engine_options import EngineOptions
from ladechat.protocol import Failed
from tests.engine.wire import Wire
from tests.hostile_folder import HostileFolder

PROGRAM = str(Path(sys.executable).with_name("ladechat"))
QUESTION = ("ask", "Who are you?", "--model", "./missing")


@pytest.fixture
def hostile(tmp_path: Path) -> HostileFolder:
    return HostileFolder(tmp_path)


def outcome(command: Sequence[str], hostile: HostileFolder) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=hostile.folder, input="", capture_output=True, text=True, timeout=120)


def test_an_engine_imports_nothing_from_the_folder_that_it_is_started_in(hostile: HostileFolder) -> None:
    python, *program, engine = EngineOptions().command()[:5]
    assert (python, engine) == (sys.executable, "engine")
    wire = Wire("--model", "./missing", program=(*program, engine), folder=hostile.folder)
    wire.process.wait()
    assert hostile.imported == []
    assert wire.until(Failed).code == "model_not_found"


def test_ask_and_its_engine_import_nothing_from_the_folder_that_they_are_started_in(hostile: HostileFolder) -> None:
    done = outcome([PROGRAM, *QUESTION], hostile)
    assert hostile.imported == []
    assert "There is no folder ./missing" in done.stderr


@pytest.mark.parametrize("command", [QUESTION, ("bench", "--model", "./missing"), ("tune", "--model", "./missing")])
def test_python_with_dash_m_finds_ladechat_alone_in_the_working_directory(
    command: Sequence[str], tmp_path: Path
) -> None:
    hostile = HostileFolder(tmp_path, but="ladechat")  # which Python looks for before any of our code runs
    done = outcome([sys.executable, "-m", "ladechat", *command], hostile)
    assert hostile.imported == []
    assert "There is no folder ./missing" in done.stderr


def test_python_programs_started_by_libraries_import_nothing_from_the_working_directory(tmp_path: Path) -> None:
    code = """
import atexit, subprocess, sys
from ladechat.shell.cli import main
atexit.register(lambda: subprocess.run([sys.executable, "-c", "import typer"]))
main()
"""
    script = tmp_path / "script"
    script.write_text(code)
    hostile = HostileFolder(tmp_path, but="ladechat")
    done = outcome([sys.executable, "-P", str(script), "--version"], hostile)
    assert "ladechat 0" in done.stdout and hostile.imported == []
