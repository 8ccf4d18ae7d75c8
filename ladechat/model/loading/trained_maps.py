"""Finds and reads the maps and heads trained for a model that is being loaded, or the reason why there are none."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ladechat.decoder.runner import Runner
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.runners.tree import TreeRunner
from ladechat.model.trained import KINDS, Trained, find_trained, fingerprint, read_trained

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Maps:
    """Maps and heads for one model.

    Attributes:
        by_kind: the maps and heads found, by kind.
        missing: for each other kind the reason why there are none, as a sentence.
    """

    by_kind: Mapping[str, Trained] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def load_maps(runner: Runner, folder: Path, name: str, dtype: torch.dtype, named: Sequence[Path] = ()) -> Maps:
    """Read the maps and heads trained for a model: the named files, and for other kinds those of `find_trained`.

    An invalid file that was not named is left out, with a line in the log.

    Args:
        runner: the model's runner; it has to give hidden states.
        folder: the checkpoint, a folder or a GGUF file.
        name: the model's name in messages.
        dtype: the type in which it computes.
        named: files named by the user; of two of a kind the later one is used.

    Raises:
        LoadError: a named file is invalid, or its kind cannot be used with this model.
    """
    why_not = runner.capabilities.logits_only
    if why_not is not None or not isinstance(runner, TreeRunner) or runner.loop is None:
        reason = why_not or "Its passes give logits alone."
        if named:
            message = f"Nothing that was trained for hidden states can be used with {name}: {reason}"
            raise LoadError("load_failed", message, "Leave --maps out.")
        return Maps(missing=dict.fromkeys(KINDS, reason))
    base, loop = fingerprint(folder), runner.loop

    def read(path: Path) -> Trained:
        return read_trained(path, base, loop.depth, loop.width, runner.device, dtype)

    by_kind = {trained.kind: trained for trained in map(read, named)}
    missing = {
        kind: f"Nothing was trained for {name} yet; "
        f"ladechat train {kind} --model {name} --out {kind}.safetensors does it."
        for kind in KINDS
    }
    for kind, path in find_trained(folder, base).items():
        if kind not in by_kind:
            try:
                by_kind[kind] = _of_kind(kind, path, read(path))
            except LoadError as error:
                missing[kind] = f"{error} {error.hint}"
                logger.warning("%s", missing[kind])
    return Maps(by_kind, {kind: why for kind, why in missing.items() if kind not in by_kind})


def _of_kind(kind: str, path: Path, trained: Trained) -> Trained:
    """Return what was read from a file named after a kind, if it is of that kind."""
    if trained.kind != kind:
        message = f"{path} holds what was trained for {trained.kind}, not for {kind}."
        raise LoadError("load_failed", message, f"Call it {trained.kind}.safetensors.")
    return trained
