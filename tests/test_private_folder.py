"""A folder for files that are executed is one that nobody else can have put something into."""

import getpass
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ladechat.bench import command as bench
from ladechat.engine import server
from ladechat.engine_options import EngineOptions
from ladechat.private_folder import (
    TORCH_CACHES,
    NotPrivate,
    executable_folder,
    keep_torch_caches_private,
    private_folder,
    private_path,
)


@pytest.fixture(autouse=True)
def _environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "temporary").mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for variable in TORCH_CACHES:
        monkeypatch.setenv(variable, "")  # so that it is put back after the test
        del os.environ[variable]


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o7777


def made(folder: Path, permissions: int = 0o777) -> Path:
    folder.mkdir()
    folder.chmod(permissions)
    return folder


def test_a_folder_that_is_made_can_be_used_by_its_user_alone_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [mode(place) for place in (folder, *folder.parents[:2])] == [0o700] * 3
    assert private_folder(folder) == folder


def test_a_folder_of_ours_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o755)
    assert mode(private_folder(tmp_path / "ours")) == 0o700


@pytest.mark.parametrize("writable", [0o777, 0o702], ids=oct)
def test_a_folder_that_others_could_write_to_is_refused_with_all_that_is_in_it(tmp_path: Path, writable: int) -> None:
    with pytest.raises(NotPrivate, match="open can be written to by others"):
        private_folder(made(tmp_path / "open", writable))


def test_a_folder_below_one_that_everybody_can_write_to_is_refused_unless_that_is_sticky(tmp_path: Path) -> None:
    shared = made(tmp_path / "shared")
    with pytest.raises(NotPrivate, match="shared can be written to by others"):
        private_folder(shared / "ours")
    shared.chmod(0o1777)
    assert private_folder(shared / "ours").is_dir()


def test_a_folder_of_another_user_is_refused_also_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # we are another user now
    for folder in ("theirs", "link", "theirs/below"):
        with pytest.raises(NotPrivate, match="belongs to another user"):
            private_folder(tmp_path / folder)


def test_a_link_of_ours_may_lead_to_another_disk(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert private_folder(tmp_path / "link") == tmp_path / "disk"


def test_what_is_no_folder_or_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotPrivate, match="cannot be made"):
            private_folder(folder)


def test_the_caches_of_torch_are_in_private_folders() -> None:
    keep_torch_caches_private()
    for variable, name in TORCH_CACHES.items():
        assert Path(os.environ[variable]) == private_path(name).resolve()
        assert mode(Path(os.environ[variable])) == 0o700


def test_a_cache_that_the_user_has_named_stays_unless_others_can_write_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(made(tmp_path / "own", 0o755)))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(made(tmp_path / "open")))
    keep_torch_caches_private()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "own") and mode(tmp_path / "own") == 0o755
    instead = Path(os.environ["TRITON_CACHE_DIR"])
    assert instead != tmp_path / "open" and mode(instead) == 0o700
    assert "open can be written to by others" in caplog.text
    assert instead == private_path("triton").resolve()


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home in which nothing can be made."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))


@pytest.mark.usefixtures("no_cache")
def test_starts_without_a_home_to_write_to_share_one_private_temporary_folder(tmp_path: Path) -> None:
    for _ in range(2):
        keep_torch_caches_private()
        caches = [Path(os.environ.pop(variable)) for variable in TORCH_CACHES]
        assert all(mode(place) == 0o700 for cache in caches for place in (cache, cache.parent))
    assert executable_folder("kernels").parent == caches[0].parent
    assert len(list((tmp_path / "temporary").iterdir())) == 1


@pytest.mark.usefixtures("no_cache")
def test_a_temporary_folder_that_another_user_may_have_put_there_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o700)
    (tmp_path / "temporary" / f"ladechat-{os.geteuid()}").symlink_to(tmp_path / "ours")
    with pytest.raises(NotPrivate, match="is a link"):
        executable_folder("kernels")
    assert not list((tmp_path / "ours").iterdir())
    keep_torch_caches_private()
    assert mode(Path(os.environ["TRITON_CACHE_DIR"])) == 0o700


def test_a_folder_on_a_disk_from_which_no_program_runs_holds_nothing_that_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noexec = [tmp_path / "cache"]

    def status(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(f_flag=os.ST_NOEXEC if any(map(folder.is_relative_to, noexec)) else 0)

    monkeypatch.setattr(os, "statvfs", status)
    assert executable_folder("kernels") == tmp_path / "temporary" / f"ladechat-{os.geteuid()}" / "kernels"
    noexec.append(tmp_path / "temporary")
    with pytest.raises(NotPrivate, match="cache/ladechat/private/kernels is on a disk from which no program runs"):
        executable_folder("kernels")


def test_a_named_cache_is_used_where_it_was_checked_also_if_a_link_is_led_elsewhere_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "link"))
    keep_torch_caches_private()
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "own")


def test_torch_takes_nothing_from_a_cache_in_the_shared_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where torch looks for compiled code by default, anybody may have been first; a taken name alone stops it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"torchinductor_{getpass.getuser()}").write_text("taken")
    keep_torch_caches_private()
    from torch._inductor.runtime.cache_dir_utils import cache_dir  # importing it makes the folder

    assert Path(cache_dir()) == private_path("inductor").resolve()


@pytest.mark.parametrize("program", ["engine", "bench"])
def test_a_program_has_pointed_the_caches_to_private_folders_before_it_imports_torch(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes that share a model inherit it."""

    class Reached(Exception):
        pass

    def reach(doing: str, steps: float = 1) -> None:
        if "PyTorch" in doing:
            assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) == private_path("inductor").resolve()
            raise Reached

    report: Any = SimpleNamespace(begin=reach, bytes_done=None)
    load: dict[str, Callable[[], object]] = {
        "engine": lambda: server._load(EngineOptions(device="cpu", dtype="float32"), report),
        "bench": lambda: bench.load_model("demo", "cpu", "float32", report),
    }
    with pytest.raises(Reached):
        load[program]()
