"""`make setup` takes a Python that all packages are made for, and makes the environment anew when it cannot be used."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fake_python import write_fake_python
from tools.installable import main, why_not

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("pyproject.toml", "constraints.txt", "tools/setup_venv.sh", "tools/installable.py")


class Checkout:
    """A checkout on a machine with the Pythons that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder / "checkout", folder / "bin"
        for name in NEEDED:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        (self.folder / "ladechat").mkdir()
        (self.folder / "ladechat" / "__init__.py").touch()
        self.programs.mkdir()
        for name in ("find", "rm", "touch"):
            (self.programs / name).symlink_to(str(shutil.which(name)))
        self.said = ""

    def has(self, name: str, version: str, **facts: Any) -> None:
        write_fake_python(self.programs / name, version, **facts)

    def set_up(self, what: str = "app", **environment: str) -> bool:
        """Run the script; whether it installed anything. What it says is in `said`."""
        note = self.folder / ".venv" / "installed.json"
        before = note.stat().st_mtime_ns if note.exists() else 0
        variables = {"PATH": str(self.programs), **environment}
        done = subprocess.run(
            ["/bin/sh", "tools/setup_venv.sh", ".venv", what],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
        )
        self.said = done.stderr
        return done.returncode == 0 and note.stat().st_mtime_ns != before

    @property
    def version(self) -> str:
        """Of the Python in the environment."""
        python = self.folder / ".venv" / "bin" / "python"
        return subprocess.check_output([python, "-c", "print(sys.version)"], text=True).strip()

    @property
    def installed(self) -> Any:
        """What pip was asked for last."""
        return json.loads((self.folder / ".venv" / "installed.json").read_text())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        ({"python3": "3.15.0", "python3.12": "3.12.1"}, "3.12.1"),
        ({"python3": "3.9.2", "python3.14": "3.14.0"}, "3.14.0"),
        ({"python3": "3.14.0", "python3.11": "3.11.2"}, "3.14.0"),
        ({"python": "3.13.1"}, "3.13.1"),
    ],
)
def test_the_first_python_is_taken_that_the_packages_are_made_for(
    checkout: Checkout, pythons: dict[str, str], taken: str
) -> None:
    for name, version in pythons.items():
        checkout.has(name, version)
    assert checkout.set_up() and checkout.version == taken


@pytest.mark.parametrize(
    ("pythons", "says"),
    [
        ({}, "with python3: that is no Python that runs here. Install Python 3.11 to 3.14"),
        ({"python3": "3.15.0"}, "with python3: it is Python 3.15.0. Install Python 3.11 to 3.14"),
        ({"python3": "3.10.4", "python3.15": "3.15.0"}, "with python3: it is Python 3.10.4."),
    ],
    ids=["none", "too new", "too old"],
)
def test_without_such_a_python_nothing_is_made_and_a_sentence_says_which_ones_fit(
    checkout: Checkout, pythons: dict[str, str], says: str
) -> None:
    for name, version in pythons.items():
        checkout.has(name, version)
    assert not checkout.set_up() and not (checkout.folder / ".venv").exists()
    assert says in checkout.said and checkout.said.count("\n") == 1


def test_a_machine_that_pytorch_is_not_made_for_is_refused_before_the_download(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1", system="Darwin", machine="x86_64")
    assert not checkout.set_up() and not (checkout.folder / ".venv").exists()
    assert "Intel Macs" in checkout.said


def test_a_python_without_venv_is_told_what_to_install(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1", parts=())
    assert not checkout.set_up()
    assert "apt install python3-venv" in checkout.said


def test_what_is_installed_is_not_installed_again(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    assert checkout.set_up()
    assert not checkout.set_up() and checkout.said == ""
    assert checkout.set_up("dev") and "dev" in checkout.installed["arguments"][-1]
    assert not checkout.set_up("dev") and not checkout.set_up()


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_list_of_packages_that_has_changed_is_installed(checkout: Checkout, name: str) -> None:
    checkout.has("python3", "3.12.1")
    checkout.set_up()
    os.utime(checkout.folder / ".venv" / "app.stamp", (0, 0))  # older than the lists
    os.utime(checkout.folder / name)
    assert checkout.set_up() and not checkout.set_up()


def test_another_python_makes_the_environment_anew_and_the_same_one_does_not(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    checkout.has("python3.13", "3.13.0")
    checkout.set_up()
    assert checkout.set_up(PYTHON="python3.13") and checkout.version == "3.13.0"
    assert not checkout.set_up(PYTHON="python3.13")
    assert not checkout.set_up(), "without PYTHON, what is there stays"


def test_a_named_python_that_does_not_fit_leaves_the_environment_as_it_is(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    checkout.has("python3.15", "3.15.0")
    checkout.set_up()
    assert not checkout.set_up(PYTHON="python3.15") and "it is Python 3.15.0" in checkout.said
    assert checkout.version == "3.12.1"


def test_an_environment_with_a_python_that_is_too_new_is_made_anew(checkout: Checkout) -> None:
    """As earlier versions of the script left it, when the installation failed."""
    checkout.has("python3", "3.15.0")
    checkout.has("python3.12", "3.12.1")
    subprocess.run([checkout.programs / "python3", "-m", "venv", checkout.folder / ".venv"], check=True)
    assert checkout.set_up() and checkout.version == "3.12.1"


def test_an_environment_whose_python_has_gone_is_made_anew(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    checkout.set_up()
    python = checkout.folder / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.12")
    assert checkout.set_up() and checkout.version == "3.12.1"


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree], ids=["moved", "copied"])
def test_a_checkout_that_was_elsewhere_is_installed_anew(checkout: Checkout, move: Any, tmp_path: Path) -> None:
    checkout.has("python3", "3.12.1")
    checkout.set_up()
    (checkout.folder / ".venv" / "of the old place").touch()
    checkout.folder = Path(move(checkout.folder, tmp_path / "elsewhere"))
    assert checkout.set_up() and checkout.installed["checkout"] == str(checkout.folder)
    assert not (checkout.folder / ".venv" / "of the old place").exists()
    assert not checkout.set_up()


def test_an_environment_that_somebody_has_prepared_is_used_as_it_is(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    subprocess.run([checkout.programs / "python3", "-m", "venv", checkout.folder / ".venv"], check=True)
    (checkout.folder / ".venv" / "a smaller PyTorch").touch()
    assert checkout.set_up() and (checkout.folder / ".venv" / "a smaller PyTorch").exists()


def test_a_folder_that_is_no_environment_is_not_deleted(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    (checkout.folder / ".venv").mkdir()
    (checkout.folder / ".venv" / "letters").touch()
    assert not checkout.set_up() and "no virtual environment" in checkout.said
    assert (checkout.folder / ".venv" / "letters").exists()


def test_pip_installs_into_the_environment_whatever_its_variables_say(checkout: Checkout) -> None:
    checkout.has("python3", "3.12.1")
    elsewhere = {"PIP_USER": "1", "PIP_TARGET": "/x", "PIP_PREFIX": "/x", "PIP_ROOT": "/x", "PIP_PYTHON": "/x"}
    assert checkout.set_up(**elsewhere, PIP_INDEX_URL="https://packages.invalid/simple")
    # PIP_USER=0 and not unset: a pip.conf may say the same
    assert checkout.installed["environment"] == {"PIP_USER": "0", "PIP_INDEX_URL": "https://packages.invalid/simple"}


@pytest.mark.parametrize(
    ("system", "machine", "libc", "python", "interpreter", "says"),
    [
        ("Linux", "x86_64", "glibc 2.28", "3.11.0", "cpython", ""),
        ("Linux", "aarch64", "glibc 2.41", "3.14.2", "cpython", ""),
        ("Darwin", "arm64", "", "3.13.1", "cpython", ""),
        ("Linux", "x86_64", "glibc 2.36", "3.15.0", "cpython", "Python 3.15.0"),
        ("Linux", "x86_64", "glibc 2.36", "3.9.18", "cpython", "Python 3.9.18"),
        ("Linux", "x86_64", "glibc 2.36", "3.14.0", "cpython without GIL", "usual CPython"),
        ("Linux", "x86_64", "glibc 2.36", "3.11.0", "pypy", "usual CPython"),
        ("Darwin", "x86_64", "", "3.12.0", "cpython", "Intel Macs"),
        ("Linux", "x86_64", "glibc 2.17", "3.12.0", "cpython", "glibc 2.17"),
        ("Linux", "x86_64", "", "3.12.0", "cpython", "musl"),
        ("Linux", "armv7l", "glibc 2.36", "3.12.0", "cpython", "armv7l"),
        ("Windows", "AMD64", "", "3.12.0", "cpython", "WSL"),
        ("FreeBSD", "amd64", "", "3.12.0", "cpython", "FreeBSD"),
    ],
)
def test_where_the_packages_have_no_wheels_a_sentence_says_why(
    system: str, machine: str, libc: str, python: str, interpreter: str, says: str
) -> None:
    reason = why_not(system, machine, libc, python, interpreter)
    assert says in reason and bool(reason) == bool(says)


def test_where_somebody_has_installed_a_pytorch_it_need_not_have_wheels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    main()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main()
    assert "riscv64" in capsys.readouterr().out
