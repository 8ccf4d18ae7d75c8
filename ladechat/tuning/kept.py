"""Small files of what was found out about a model as it runs here, kept from session to session."""

import contextlib
import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from ladechat.files import read_file

FILES_KEPT = 64
"""So many files of a kind stay; those that were written the longest ago make room."""


def kept_file(kind: str, **about: object) -> Path:
    """Where something is kept: one file of its kind for each model, device, type and number of threads.

    Args:
        kind: the name of the folder.
        about: everything that it depends on besides the processor: the model's config, device, type, threads …
    """
    what = json.dumps({**about, "processor": processor()}, sort_keys=True, default=str)
    digest = hashlib.blake2b(what.encode(), digest_size=12)
    return user_cache_path("ladechat") / kind / f"{digest.hexdigest()}.json"


def processor() -> str:
    """The name of this machine's processor."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return platform.processor()


def read_kept(file: Path, name: str) -> Any:
    """What was kept under a name; None if nothing can be read."""
    try:
        return json.loads(read_file(file))[name]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write_kept(file: Path, name: str, value: object) -> None:
    """Keep a value under a name. Where nothing can be written, it has to be found out again the next time."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps({name: value}), encoding="utf-8")
        partial.replace(file)
        for old in sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)[:-FILES_KEPT]:
            old.unlink()
