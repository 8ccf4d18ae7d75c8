"""The texts that the benchmark for GPUs compares: where they part, and where they must not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from benchmarks.common import BUNDLED
from benchmarks.gpu_ways import Plan, Ways, decoders, random_text, tokens_of, ways_of, write
from ladechat.model.load import load

TIMES = 5
"""How often each text is written through recordings: on an H200 it once differed in one of three comparisons."""


def of_recordings(plan: Plan, ways: Ways) -> dict[str, dict[str, Any]]:
    """Compare texts written through recordings with those of the same passes run anew: equal in any type.

    Beside the model as it is, texts of a random model in half precision part soon, at a near tie: told, not required.
    """
    prompt, found = random_text(plan, plan.prompt), {}
    for name, decoder in decoders(ways.runner).items():
        graphs = ways.recorded()
        *recordings, anew, eager = (
            tokens_of(write(ways.runner, how, decoder(), prompt, plan)[0])
            for how in (*[graphs] * TIMES, ways.unrecorded(), None)
        )
        recorded = next((text for text in recordings if text != anew), anew)
        found[f"{name}, recorded and run anew"] = beside(recorded, anew)
        found[f"{name}, recorded and eager"] = beside(recorded, eager, required=plan.dtype == torch.float32)
    return found


def in_float32(plan: Plan) -> dict[str, dict[str, Any]]:
    """Texts of the bundled model in float32, through recordings and by the model as it is: they must be the same."""
    loaded = load(BUNDLED, BUNDLED.name, str(plan.device), "float32", lambda _: None, lambda _: None)
    ways, found = ways_of(loaded.model), {}
    prompt = random_text(replace(plan, shape={"vocab_size": loaded.vocabulary}), plan.prompt)
    for name, decoder in decoders(ways.runner).items():
        eager, recorded = (
            tokens_of(write(ways.runner, how, decoder(), prompt, plan)[0]) for how in (None, ways.recorded())
        )
        found[f"{name} of the bundled model in float32, recorded and eager"] = beside(recorded, eager)
    return found


def beside(text: Sequence[int], other: Sequence[int], required: bool = True) -> dict[str, Any]:
    """Where two texts part, if they do, and whether they must not."""
    pairs = enumerate(zip(text, other, strict=True))
    return {
        "tokens": len(text),
        "parts_at": next((at for at, (one, another) in pairs if one != another), None),
        "required": required,
    }
