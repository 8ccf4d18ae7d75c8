"""Folders that nobody else can write to, for files that are executed: compiled kernels, and torch's caches.

In a folder that others can write to, such as the temporary one, another user may have created such a file first.
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
"""The variables for the folders from which torch and Triton load compiled code, and ladechat's folder for each."""

logger = logging.getLogger(__name__)


class NotPrivate(Exception):
    """The reason why a folder's content cannot be trusted, or why it cannot be created, in a sentence."""


def private_path(name: str) -> Path:
    """Return the path of a private folder of this name, whether or not it exists."""
    return user_cache_path("ladechat") / "private" / name


def private_folder(folder: Path) -> Path:
    """Create a folder that only this user can read and write, or check that it is one.

    Returns:
        The folder with all symbolic links resolved, so that nobody can redirect them after the check.

    Raises:
        NotPrivate: it cannot be created, or others could have put something into it.
    """
    try:
        folder = _made(folder)
        folder.chmod(0o700)
    except OSError as error:
        raise NotPrivate(f"{folder} cannot be made: {error.strerror or error}.") from error
    return folder


def executable_folder(name: str) -> Path:
    """Return a private folder whose files can be executed: in the user's cache, or else below the temporary folder.

    The second one is the same at each start, so that folders do not accumulate.

    Raises:
        NotPrivate: neither can be created, is private, and is on a disk that allows execution.
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
    """Return whether a file or folder is on a disk mounted with noexec. On macOS that is unknown, and False."""
    return bool(os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0))


def _cache_folder(name: str) -> Path:
    return private_folder(private_path(name))


def _temporary_folder(name: str) -> Path:
    """Return a private folder of this user below the temporary folder."""
    try:
        base = Path(tempfile.gettempdir()).resolve() / f"ladechat-{os.geteuid()}"
    except OSError as error:
        raise NotPrivate(f"There is no temporary folder: {error.strerror or error}.") from error
    if private_folder(base) != base:
        raise NotPrivate(f"{base} is a link.")  # which anybody may have put there
    return private_folder(base / name)


def keep_torch_caches_private() -> None:
    """Point the caches from which torch executes files to private folders. Call it before torch is imported.

    A folder that the user has set stays, with symbolic links resolved, if nobody else can write to it. Child processes
    inherit the variables.
    """
    for variable, name in TORCH_CACHES.items():
        named = os.environ.get(variable)
        try:
            os.environ[variable] = str(_made(Path(named)) if named else executable_folder(name))
        except (NotPrivate, OSError) as error:
            os.environ[variable] = str(_instead(name))
            logger.warning("torch keeps what it compiles in %s: %s", os.environ[variable], error)


def _instead(name: str) -> Path:
    """Return a folder in place of one from which torch must not execute files."""
    try:
        return executable_folder(name)
    except NotPrivate:
        return Path(tempfile.mkdtemp(prefix=f"ladechat-{name}-"))  # empty, private, and not removed


def _made(folder: Path) -> Path:
    """Create a folder if it does not exist, check it, and return it with links resolved."""
    for place in reversed((folder, *folder.parents)):
        place.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would let others write if the umask does
    folder = folder.resolve(strict=True)
    for place in (folder, *folder.parents):
        _check_owner_and_mode(place, place != folder)
    return folder


def _check_owner_and_mode(place: Path, is_parent: bool) -> None:
    """Refuse a folder in which others could replace something. In a sticky folder they cannot replace our files."""
    about = place.stat()
    if about.st_uid != os.geteuid() and not (is_parent and about.st_uid == 0):
        raise NotPrivate(f"{place} belongs to another user.")
    by_others = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and not _is_own_group(about.st_gid))
    if by_others and not (is_parent and about.st_mode & stat.S_ISVTX):
        raise NotPrivate(f"{place} can be written to by others (mode {stat.S_IMODE(about.st_mode):o}).")


def _is_own_group(group: int) -> bool:
    """Return whether a group has this user's name and lists nobody else, like the personal group of many systems.

    Users who have it as their primary group are in no such list.
    """
    try:
        about, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group == user.pw_gid and about.gr_name == user.pw_name and set(about.gr_mem) <= {user.pw_name}
