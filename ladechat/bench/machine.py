"""Describes the machine that a result was measured on."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """Return the processor, the cores and the versions that matter, without anything that identifies the machine."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in _lines(cpuinfo) if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in ("torch", "transformers", "textual")},
    }


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
