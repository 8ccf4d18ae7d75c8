"""Small files with measurements of a model on this machine, saved for later sessions."""

import contextlib
import hashlib
import json
import logging
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_cache_path

from ladechat.files import read_saved, replace_file

Value = TypeVar("Value")

MOST_FILES = 64  # of a kind; those written the longest ago are deleted
MOST_BYTES = 1024 * 1024  # of such a file


def saved_file(kind: str, **about: object) -> Path:
    """Return the file for a kind of value and all that it depends on but the processor: model, device, threads …"""
    what = json.dumps({**about, "processor": processor()}, sort_keys=True, default=str)
    digest = hashlib.blake2b(what.encode(), digest_size=12)
    return user_cache_path("ladechat") / kind / f"{digest.hexdigest()}.json"


def processor() -> str:
    """Return the name of this machine's processor."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return platform.processor()


def read_value(file: Path, understand: Callable[[Any], Value]) -> Value | None:
    """Return what `understand` makes of a file's JSON; None without a file, or if it raises: then it is set aside."""
    value, problem = read_saved(file, lambda content: understand(json.loads(content)), MOST_BYTES)
    if problem:
        logging.getLogger(__name__).warning("%s", problem)
    return value


def write_value(file: Path, value: object) -> None:
    """Save a value as JSON. Where the file cannot be written, the value has to be determined again the next time."""
    with contextlib.suppress(OSError):
        replace_file(file, json.dumps(value).encode())
        files = [one for one in file.parent.glob("*.json*") if one.is_file()]  # also those that were set aside
        for old in sorted(files, key=lambda one: one.stat().st_mtime)[:-MOST_FILES]:
            old.unlink()
