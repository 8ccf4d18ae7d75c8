"""Folders that nobody else can write to, for files that are executed: compiled kernels, and the caches of torch.

In a folder that others can write to, as the temporary one, another user may have put such a file before us.
"""

import grp
import logging
import os
import pwd
import stat
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

TORCH_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
}
"""The variables that name the folders from which torch and Triton load what they have compiled, and ours for each."""

logger = logging.getLogger(__name__)


class NotPrivate(Exception):
    """Why what a folder holds cannot be trusted, or why it cannot be made, in a sentence."""


def private_path(name: str) -> Path:
    """Where a private folder of this name is, or would be."""
    return user_cache_path("ladechat") / "private" / name


def private_folder(folder: Path) -> Path:
    """Make a folder that only this user can read and write, or check that it is one.

    Returns:
        The folder with all symbolic links resolved, so that nobody can lead them elsewhere after the check.

    Raises:
        NotPrivate: it cannot be made, or others could have put something into it.
    """
    try:
        folder = _made(folder)
        folder.chmod(0o700)
    except OSError as error:
        raise NotPrivate(f"{folder} cannot be made: {error.strerror or error}.") from error
    return folder


def executable_folder(name: str) -> Path:
    """Return a private folder whose files can be executed: in the user's cache, or else below the temporary folder.

    The second one is the same at each start, so that nothing piles up there.

    Raises:
        NotPrivate: neither can be made, is private, and on a disk from which programs run.
    """
    reasons = []
    for private in (_cache_folder, _temporary_folder):
        try:
            folder = private(name)
        except NotPrivate as error:
            reasons.append(str(error))
            continue
        if not runs_no_program(folder):
            return folder
        reasons.append(f"{folder} is on a disk from which no program runs (noexec).")
    raise NotPrivate(" ".join((*reasons, "XDG_CACHE_HOME may name another place for it.")))


def runs_no_program(path: Path) -> bool:
    """Whether a file or folder is on a disk from which nothing is executed (noexec). macOS does not say."""
    return bool(os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0))


def _cache_folder(name: str) -> Path:
    return private_folder(private_path(name))


def _temporary_folder(name: str) -> Path:
    """A private folder of this user below the temporary one."""
    try:
        base = Path(tempfile.gettempdir()).resolve() / f"ladechat-{os.geteuid()}"
    except OSError as error:
        raise NotPrivate(f"There is no temporary folder: {error.strerror or error}.") from error
    if private_folder(base) != base:
        raise NotPrivate(f"{base} is a link.")  # that anybody may have put there
    return private_folder(base / name)


def keep_torch_caches_private() -> None:
    """Point the caches whose files torch executes to private folders. To be called before torch is imported.

    A folder that the user has named stays, if nobody else can write to it, with symbolic links resolved. Processes
    started from here inherit this.
    """
    for variable, name in TORCH_CACHES.items():
        named = os.environ.get(variable)
        try:
            os.environ[variable] = str(_made(Path(named)) if named else executable_folder(name))
        except (NotPrivate, OSError) as error:
            os.environ[variable] = str(_instead(name))
            logger.warning("torch keeps what it compiles in %s: %s", os.environ[variable], error)


def _instead(name: str) -> Path:
    """A folder in place of one from which torch must not execute files."""
    try:
        return executable_folder(name)
    except NotPrivate:
        return Path(tempfile.mkdtemp(prefix=f"ladechat-{name}-"))  # empty, private, and left there


def _made(folder: Path) -> Path:
    """The folder, made if it was not there, with links resolved and checked."""
    for place in reversed((folder, *folder.parents)):
        place.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would let others write where the umask does
    folder = folder.resolve(strict=True)
    for place in (folder, *folder.parents):
        _check_owner_and_mode(place, place != folder)
    return folder


def _check_owner_and_mode(place: Path, is_parent: bool) -> None:
    """Refuse a folder that others could exchange something in. In a sticky one they cannot exchange what is ours."""
    about = place.stat()
    if about.st_uid != os.geteuid() and not (is_parent and about.st_uid == 0):
        raise NotPrivate(f"{place} belongs to another user.")
    by_others = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and not _is_own_group(about.st_gid))
    if by_others and not (is_parent and about.st_mode & stat.S_ISVTX):
        raise NotPrivate(f"{place} can be written to by others (mode {stat.S_IMODE(about.st_mode):o}).")


def _is_own_group(group: int) -> bool:
    """Whether a group is named like this user and lists nobody else, as the one that many systems give each user.

    Whoever else has it as their primary group is in no such list.
    """
    try:
        about, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group == user.pw_gid and about.gr_name == user.pw_name and set(about.gr_mem) <= {user.pw_name}
