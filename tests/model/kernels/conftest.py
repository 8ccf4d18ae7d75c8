"""The kernels, built for this processor."""

from pathlib import Path

import pytest

from ladechat.model.kernels.build import Build
from ladechat.model.kernels.library import Library


@pytest.fixture(scope="package")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A build that has ended, in a folder of its own. Other tests run without a compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CXX", raising=False)
        build = Build(tmp_path_factory.mktemp("kernels"))
        build.library()
    return build


@pytest.fixture(scope="package")
def library(build: Build) -> Library:
    """The kernels on two threads."""
    return Library(build.library(), threads=2)


@pytest.fixture(scope="package")
def build_path(build: Build) -> Path:
    """The library's file."""
    return build.library()
