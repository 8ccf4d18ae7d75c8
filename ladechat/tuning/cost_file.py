"""What passes cost, kept from session to session: one small file for each model, device, type and number of threads."""

import contextlib
import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

FILES_KEPT = 64
"""So many files stay; those that were written the longest ago make room."""


def costs_file(**about: object) -> Path:
    """Where the costs of a model's passes are kept, as it runs here.

    Args:
        about: everything that they depend on besides the processor: the model's config, device, type, threads …
    """
    what = json.dumps({**about, "processor": processor()}, sort_keys=True, default=str)
    digest = hashlib.blake2b(what.encode(), digest_size=12)
    return user_cache_path("ladechat") / "costs" / f"{digest.hexdigest()}.json"


def processor() -> str:
    """The name of this machine's processor."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return platform.processor()


def read_costs(file: Path) -> dict[int, float] | None:
    """The seconds that are kept, by slots; None if nothing usable is."""
    try:
        kept: Any = json.loads(file.read_text(encoding="utf-8"))
        found = {int(slots): float(seconds) for slots, seconds in kept["seconds"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    usable = 1 in found and len(found) > 1 and all(0 < one < float("inf") for one in found.values())
    return found if usable and min(found) == 1 else None


def write_costs(file: Path, seconds: dict[int, float]) -> None:
    """Keep costs. Where nothing can be written they are measured again the next time."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps({"seconds": seconds}), encoding="utf-8")
        partial.replace(file)
        for old in sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)[:-FILES_KEPT]:
            old.unlink()
