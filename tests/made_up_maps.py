"""Maps and heads that nobody trained: decoders that need some are tested with these. Bad guesses change no text."""

import json
from pathlib import Path

import torch

from ladechat.decoder.drafters.heads import RANKS
from ladechat.decoder.drafters.medusa import MedusaHeads
from ladechat.decoder.hidden import TransferMaps
from ladechat.decoder.runner import Runner
from ladechat.model.runners.tree import TreeRunner
from ladechat.model.trained import KINDS, Trained, fingerprint, write_trained

AHEAD = 3
CHANCES = [[0.9**ahead * 0.5 ** (rank + 1) for rank in range(RANKS)] for ahead in range(AHEAD)]


def made_up(
    kind: str, depth: int, width: int, seed: int = 0, dtype: torch.dtype = torch.float32, base: str = "0" * 32
) -> Trained:
    """Random ones, for a model with so many layers and hidden states of this length."""
    dice = torch.Generator().manual_seed(seed)
    noise = torch.randn(AHEAD, width, width, generator=dice) / width**0.5
    maps: TransferMaps | MedusaHeads
    if kind == "transfer":
        layers = torch.randint(depth, (AHEAD,), generator=dice).sort().values.tolist()
        maps = TransferMaps(tuple(layers), (torch.eye(width) + 0.3 * noise).to(dtype))
    else:
        maps = MedusaHeads(noise.to(dtype), torch.randn(AHEAD, width, generator=dice).to(dtype))
    return Trained(kind, maps, CHANCES, base, "made up", 0)


def made_up_kinds(depth: int, width: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> dict[str, Trained]:
    """One of each kind."""
    return {kind: made_up(kind, depth, width, seed, dtype) for kind in KINDS}


@torch.inference_mode()
def made_up_for(runner: Runner, seed: int = 0) -> dict[str, Trained]:
    """One of each kind, for the model of this runner."""
    assert isinstance(runner, TreeRunner) and runner.loop is not None
    dtype = runner.loop.embed(torch.zeros(1, 1, dtype=torch.long, device=runner.device)).dtype
    return made_up_kinds(runner.loop.depth, runner.loop.width, seed, dtype)


def save_made_up(folder: Path, where: Path | None = None) -> list[Path]:
    """Write one of each kind for a checkpoint: beside its weights, or into another folder. The files."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    files = [(where or folder) / f"{kind}.safetensors" for kind in KINDS]
    for kind, file in zip(KINDS, files, strict=True):
        write_trained(file, made_up(kind, config["num_hidden_layers"], config["hidden_size"], base=fingerprint(folder)))
    return files
