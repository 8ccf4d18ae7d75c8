"""The kernels, built once for a run of the tests."""

import fcntl
import os
from pathlib import Path

import pytest

from ladechat.model.kernels.build import Build, BuildError, compiler


def script(path: Path, text: str) -> Path:
    """A program of the shell, as in the place of a compiler."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def compiled(factory: pytest.TempPathFactory, processor: str = "native") -> Build:
    """A build that has ended, in a folder that all workers of a run share: the first one compiles, the others wait.

    Where no compiler is, the test is skipped.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernels"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.delenv("CXX", raising=False)  # other tests run without a compiler
        try:
            compiler()
        except BuildError as error:
            pytest.skip(str(error))
        build = Build(folder, processor)
        build.library()
    return build
