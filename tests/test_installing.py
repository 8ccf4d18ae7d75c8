"""What is missing is installed by the environment's own installer, under names that exist; what cannot be is said."""

import importlib.util
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import Mock

import pytest

from ladechat.__main__ import main
from ladechat.installing import command_for, command_for_extra

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_the_command_is_that_of_the_running_python_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    assert command_for("torchao>=1") == f"'{tmp_path}/my env/bin/python' -m pip install 'torchao>=1'"
    monkeypatch.chdir(tmp_path)
    assert command_for("torchao") == "'my env/bin/python' -m pip install torchao"


def test_without_pip_uv_installs_into_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "uv").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_for("gguf") == "uv pip install --python /env/bin/python gguf"


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_named_by_its_packages_and_not_by_a_name_that_no_index_has(extra: str) -> None:
    command = command_for_extra(extra)
    assert "ladechat[" not in command
    for package in EXTRAS[extra]:
        name = package.partition(">")[0].partition("=")[0]
        assert name in command


def test_windows_is_told_of_wsl_before_anything_is_imported_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    monkeypatch.setitem(sys.modules, "ladechat.shell.cli", None)
    with pytest.raises(SystemExit, match="on Windows, start it in WSL"):
        main()


STOPPED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("it went on")
sys.meta_path.insert(0, Interrupt())
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
from ladechat.__main__ import main
main()
"""
"""A command that is interrupted while it imports."""


@pytest.mark.parametrize(("shell", "code", "said"), [("usual", 130, False), ("ignored", 1, True)])
@pytest.mark.parametrize("imported", ["ladechat.interrupts", "platform", "ladechat.shell.cli"])
def test_ctrl_c_while_a_command_begins_ends_it_without_a_word(imported: str, shell: str, code: int, said: bool) -> None:
    """Where the shell has it ignored, it is."""
    ended = subprocess.run([sys.executable, "-P", "-c", STOPPED, imported, shell], capture_output=True, text=True)
    assert (ended.returncode, "it went on" in ended.stderr) == (code, said)
    assert said or ended.stdout == ended.stderr == ""


def test_the_package_itself_imports_nothing_in_which_ctrl_c_could_be_a_traceback() -> None:
    """It is run before what handles Ctrl+C can be."""
    imports = "import sys; before = set(sys.modules); import ladechat; print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(ROOT)!r}); {imports}"],
        capture_output=True,
        text=True,
    )
    assert (ran.stdout, ran.stderr) == ("ladechat\n", "")


LIBRARY_STOPPED = """
import os, signal, sys
from ladechat.model.checkpoint import faults
class Interrupt:
    def find_spec(self, name, *_):
        if name == "stopped":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("another error is made of it")
sys.meta_path.insert(0, Interrupt())
faults.LIBRARIES = ("stopped",)
faults.import_libraries()
"""


def test_ctrl_c_while_a_library_is_imported_is_no_broken_library() -> None:
    ended = subprocess.run([sys.executable, "-P", "-c", LIBRARY_STOPPED], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_ctrl_c_before_a_command_is_known_ends_it_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.shell.cli.main", Mock(side_effect=KeyboardInterrupt))
    usual = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit, match="130"):
        main()
    assert signal.getsignal(signal.SIGINT) is usual


def test_a_python_without_docstrings_gets_a_sentence_and_not_a_word_about_the_checkpoint() -> None:
    ended = subprocess.run([sys.executable, "-OO", "-P", "-m", "ladechat", "ask", "hi"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "PYTHONOPTIMIZE" in ended.stderr and "checkpoint" not in ended.stderr
