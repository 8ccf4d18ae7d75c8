"""Runs the tests of the model and of the door for other people's code with other versions of what ladechat needs.

    python -m tools.versions lowest newest     # each in build/versions/NAME, which is made

lowest is the first version that pyproject.toml declares of all that the app and its extras name, newest the last that
its ranges let in. `make test-versions` runs the pinned ones, too. Whoever widens a range runs it.
"""

import argparse
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "versions"
TESTS = ("tests/generate", "tests/model")
LOWER_BOUND = re.compile(r"([\w.-]+)>=([\w.]+)")


def lowest_of(requirements: Iterable[str]) -> list[str]:
    """Constraints that pin each requirement to its lower bound; those without one are left as they are."""
    found = [LOWER_BOUND.match(requirement) for requirement in requirements]
    return [f"{bound[1]}=={bound[2]}" for bound in found if bound]


def constraints_for(name: str) -> list[str]:
    """What pip may choose from, beside the ranges: what the app and its extras need at its lowest, or nothing.

    What only developers need (`dev`) is free: it is no part of what users install.
    """
    if name == "newest":
        return []
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = list(declared["dependencies"])
    for extra, requirements in declared["optional-dependencies"].items():
        needed += requirements if extra != "dev" else []
    return lowest_of(dict.fromkeys(needed))


def installed(name: str) -> Path:
    """The interpreter of an environment with these versions, which is made or brought up to date."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True, clear=True)
    pins = FOLDER / f"{name}.txt"
    pins.write_text("".join(f"{line}\n" for line in constraints_for(name)), encoding="utf-8")
    install: list[str | Path] = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    # Most of what is installed is never imported, and compiling all of it takes minutes.
    install += ["--no-compile", "--upgrade", "--upgrade-strategy", "eager", "--constraint", pins]
    install += ["--editable", f"{ROOT}[dev]"]
    subprocess.run(install, check=True)
    return python


def tested(name: str, arguments: list[str]) -> bool:
    """Whether the tests pass with these versions."""
    python = installed(name)
    said = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    shown = [line for line in said.splitlines() if re.match(r"(torch|transformers|tokenizers)==", line)]
    print(f"{name}: {', '.join(shown)}", flush=True)
    return subprocess.run([python, "-m", "pytest", *TESTS, *arguments], cwd=ROOT).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=["lowest", "newest"], metavar="lowest|newest")
    chosen, arguments = parser.parse_known_args()
    failed = [name for name in chosen.names if not tested(name, arguments)]
    if failed:
        sys.exit(f"The tests fail with these versions: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
