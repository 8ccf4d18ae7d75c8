"""Describes the machine that a result was measured on."""

import os
import platform
from importlib.metadata import version
from typing import Any

from ladechat.tuning.saved import processor


def describe() -> dict[str, Any]:
    """Return the processor, the cores and the versions that matter, without anything that identifies the machine."""
    return {
        "processor": processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in ("torch", "transformers", "textual")},
    }
