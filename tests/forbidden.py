"""Folders that may not be searched, for a user too whom the system lets search any."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOOKS = ("stat", "lstat", "open", "scandir", "listdir")


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path, *, listed: bool = False) -> None:
    """Let nothing in a folder be looked at, nor in the folders in it.

    Args:
        monkeypatch: of the test.
        folder: it is there itself, as far as that can be seen.
        listed: its names can still be read, as with mode 600.
    """

    def guarded(look: Callable[..., Any], lists: bool) -> Callable[..., Any]:
        def guard(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            inside = isinstance(path, str | os.PathLike) and folder in Path(path).parents
            if inside or (lists and not listed and not isinstance(path, int) and Path(path) == folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return look(path, *arguments, **options)

        return guard

    for name in LOOKS:
        monkeypatch.setattr(os, name, guarded(getattr(os, name), name in ("scandir", "listdir")))
