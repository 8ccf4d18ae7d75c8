"""How a checkpoint itself would have its tokens drawn. For showing: what is asked for decides."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SamplingDefaults:
    """What generation_config.json says; None where it does not say."""

    do_sample: bool
    temperature: float | None
    top_p: float | None
    top_k: int | None


def sampling_defaults(folder: Path) -> SamplingDefaults | None:
    """The checkpoint's own; None where it says nothing, or nothing that can be read."""
    try:
        found: Any = json.loads((folder / "generation_config.json").read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or not found.keys() & {"do_sample", "temperature", "top_p", "top_k"}:
        return None
    top_k = _number(found.get("top_k"))
    return SamplingDefaults(
        do_sample=found.get("do_sample") is True,
        temperature=_number(found.get("temperature")),
        top_p=_number(found.get("top_p")),
        top_k=None if top_k is None else int(top_k),
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
