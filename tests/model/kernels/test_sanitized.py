"""The kernels read and write nothing beyond their arrays, and their threads do not race: sanitizers say so."""

import platform
import subprocess
from pathlib import Path

import pytest

from ladechat.model.kernels.build import SOURCES, BuildError, compiler
from tests.model.kernels.test_library import OTHERS

CSRC, EVERYTHING = SOURCES[0].parent, Path(__file__).with_name("everything.cpp")
STANDARD = ["-std=c++20", "-pthread", f"-I{CSRC}"]
ARCHITECTURE = "-mcpu" if platform.machine() in ("arm64", "aarch64") else "-march"


def compiler_or_skip(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("CXX", raising=False)  # other tests run without a compiler
    try:
        return compiler()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.mark.full
@pytest.mark.parametrize("processor", ["native", *OTHERS])
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_a_sanitizer_finds_nothing(
    sanitizer: str, processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "everything"
    checks = ["-O1", "-g", "-fno-sanitize-recover=all", f"-fsanitize={sanitizer}", f"{ARCHITECTURE}={processor}"]
    command = [*compiler_or_skip(monkeypatch), *STANDARD, *checks, "-w", str(EVERYTHING), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode and "cannot find" in built.stderr:
        pytest.skip("This compiler comes without its sanitizers.")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.full
def test_the_compiler_warns_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For AVX2: the compiler's own headers for AVX-512 have warnings."""
    strict = ["-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    own = [f"-march={one}" for one in OTHERS if one == "haswell"]
    command = [*compiler_or_skip(monkeypatch), *STANDARD, *strict, *own]
    built = subprocess.run(
        [*command, str(CSRC / "kernels.cpp"), "-o", str(tmp_path / "kernels.so")], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
