"""What passes cost, kept from session to session: one small file for each model, device, type and number of threads."""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from platformdirs import user_cache_path
from transformers import PreTrainedModel

from ladechat.model.compiled import how_made, processor

LONGEST_KEPT = 64
"""So many files stay; those that were written the longest ago make room."""


class Kept(NamedTuple):
    """The seconds of passes by their slots, and what is lost behind them: see `ladechat.model.cost.PassCosts.lost`."""

    seconds: dict[int, float]
    lost: float


def costs_file(model: PreTrainedModel, on: str = "", passes: str = "") -> Path:
    """Where the costs of a model's passes are kept, as it runs here.

    Args:
        model: whose passes they are.
        on: the device in words, which say how many share the model.
        passes: how passes run, one of `ladechat.options.PASSES`, where that is more than which are compiled.
    """
    device = model.device
    about = {
        "config": {key: value for key, value in model.config.to_dict().items() if key != "_name_or_path"},
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else [device.type, processor()],
        "shared": on,
        "passes": passes if device.type == "cuda" else "",
        "dtype": str(model.dtype),
        "attention": model.config._attn_implementation,
        "threads": torch.get_num_threads(),
        "versions": [torch.__version__, transformers.__version__],
        "made": how_made(),
    }
    digest = hashlib.blake2b(json.dumps(about, sort_keys=True, default=str).encode(), digest_size=12)
    return user_cache_path("ladechat") / "costs" / f"{digest.hexdigest()}.json"


def read_costs(file: Path, compiled: list[int]) -> Kept | None:
    """What is kept, where passes of the same sizes were compiled; None if nothing is."""
    try:
        kept: Any = json.loads(file.read_text(encoding="utf-8"))
        if kept["compiled"] != compiled:
            return None
        found = {int(slots): float(seconds) for slots, seconds in kept["seconds"].items()}
        lost = float(kept["lost"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    told = 1 in found and len(found) > 1 and all(0 < one < float("inf") for one in found.values())
    return Kept(found, lost) if told and 0 <= lost < float("inf") else None


def write_costs(file: Path, compiled: list[int], costs: Kept) -> None:
    """Keep costs. Where nothing can be written they are measured again the next time."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps({"compiled": compiled, **costs._asdict()}), encoding="utf-8")
        partial.replace(file)
        for old in sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)[:-LONGEST_KEPT]:
            old.unlink()
