"""Files of trained parts for a model with frozen weights: the maps of hidden transfer, the heads of Medusa.

They are safetensors files, which contain no code, with a header that names the model they belong to.
"""

import hashlib
import json
import logging
import operator
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from platformdirs import user_data_path
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from ladechat.decoder.drafters.heads import RANKS
from ladechat.decoder.drafters.medusa import MedusaHeads
from ladechat.decoder.hidden import TransferMaps
from ladechat.files import DAMAGE, replace_file
from ladechat.model.checkpoint.files import LoadError, is_gguf, weight_files
from ladechat.model.runners.model_runner import ModelRunner

logger = logging.getLogger(__name__)

FORMAT = "ladechat-trained-1"
KINDS = ("transfer", "medusa")
"""The kinds that can be trained. The file of each has its name, with the suffix .safetensors."""

MIB = 1 << 20
MOST_STEPS_AHEAD = 16
"""The most positions for which a file may have maps or heads. No method uses as many."""
TENSORS = {"transfer": ("weights",), "medusa": ("biases", "weights")}
"""The names of the tensors in each kind of file, sorted."""


@dataclass(frozen=True)
class Trained:
    """Trained maps or heads, with their acceptance rates.

    Attributes:
        kind: one of `KINDS`.
        maps: the maps or heads, for k tokens ahead.
        chances: (k, `RANKS`) how often the guess of each rank was right on held-out text, counted for each position
            where those before it had their token among the guesses.
        base: the `fingerprint` of the model that they were trained for.
        base_name: the name of that model.
        steps: the number of training steps.
        right: (k,) how often the best guess for each position was right on that text, whatever came before it; empty in
            files of earlier versions.
    """

    kind: str
    maps: TransferMaps | MedusaHeads
    chances: list[list[float]]
    base: str
    base_name: str
    steps: int
    right: Sequence[float] = ()


class _Header(NamedTuple):
    """The header of a file, validated."""

    kind: str
    base: str
    base_name: str
    layers: list[int]
    chances: list[list[float]]
    steps: int
    right: list[float]


def fingerprint(folder: Path) -> str:
    """Return a fingerprint of the weights of a checkpoint, a folder or a GGUF file: 32 hexadecimal digits.

    It is the beginning of the SHA-256 of each file's name, size, first and last MiB, which takes hardly any time.

    Raises:
        LoadError: a file is missing or cannot be read.
    """
    found = [folder] if is_gguf(folder) else [folder / name for name in sorted(weight_files(folder) or [])]
    digest = hashlib.sha256()
    try:
        for path in found:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest.update(f"{path.name}\0{size}\0".encode())
                digest.update(file.read(MIB))
                file.seek(max(0, size - MIB))
                digest.update(file.read(MIB))
    except OSError as error:
        message = f"The weights in {folder} cannot be read: {error.strerror or error}."
        raise LoadError("load_failed", message, "Check that all files of the checkpoint are there.") from error
    return digest.hexdigest()[:32]


def trained_folder(base: str) -> Path:
    """Return the default folder for files trained for the model with this fingerprint."""
    return user_data_path("ladechat") / "trained" / base


def find_trained(folder: Path, base: str) -> dict[str, Path]:
    """Return the trained files of a model, by kind: beside its weights, or else in `trained_folder`.

    A folder without search permission counts as having them, so that reading them reports the error.
    """
    places = (folder.parent if is_gguf(folder) else folder, trained_folder(base))
    found: dict[str, Path] = {}
    for kind in KINDS:
        files = (place / f"{kind}.safetensors" for place in places)
        first = next((file for file in files if _may_be_there(file)), None)
        if first is not None:
            found[kind] = first
    return found


def _may_be_there(file: Path) -> bool:
    """Return whether it is a file; True where that cannot be known."""
    try:
        return file.is_file()
    except OSError:
        return True


def write_trained(path: Path, trained: Trained) -> None:
    """Write maps or heads to a file, in 16 bits. The file is replaced atomically.

    Raises:
        OSError: it cannot be written, for example on a full disk.
        ValueError: not all of its numbers are finite.
    """
    maps = trained.maps
    tensors = {name: _in_16_bits(getattr(maps, name)) for name in TENSORS[trained.kind]}
    header = {
        "format": FORMAT,
        "kind": trained.kind,
        "base": trained.base,
        "base_name": trained.base_name,
        "layers": json.dumps(list(maps.layers) if isinstance(maps, TransferMaps) else []),
        "chances": json.dumps(trained.chances),
        "steps": str(trained.steps),
        "right": json.dumps(list(trained.right)),
    }
    replace_file(path, save(tensors, header))


def _in_16_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the CPU in float16, or where numbers exceed its range in bfloat16, which is coarser."""
    for dtype in (torch.float16, torch.bfloat16):
        packed = tensor.detach().to("cpu", dtype, copy=True).contiguous()
        if bool(packed.isfinite().all()):
            return packed
    raise ValueError("Not all numbers of what was trained are finite.")


def read_trained(
    path: Path, base: str, depth: int, width: int, device: torch.device | str, dtype: torch.dtype
) -> Trained:
    """Read the maps or heads in a file, for passes of a model.

    The model has this fingerprint (`base`), and `depth` layers of hidden states of size `width`.

    Raises:
        LoadError: the file cannot be read, is of another format or damaged, or was trained for another model.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe may never end
            raise _refused(f"{path} is a folder, a device or a pipe, not a file.", "Give the file in it, or another")
        with safe_open(path, framework="pt", device="cpu") as file:
            header = _header(path, file.metadata())
            _check_model(path, header, base, depth)
            _check_shapes(path, header, file, width)
            tensors = {name: file.get_tensor(name) for name in TENSORS[header.kind]}
    except SafetensorError as error:
        message = f"{path} is no safetensors file, or not all of it is there."
        raise _refused(message, "Copy it again, or train anew") from error
    except (OSError, ValueError) as error:  # ValueError: no path
        why = getattr(error, "strerror", None) or error
        raise _refused(f"{path} cannot be read: {why}.", "Give another file") from error
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise _refused(f"{path} holds numbers that are not finite, which guess nothing.", "Train anew")
    placed = {name: tensor.to(device, dtype) for name, tensor in tensors.items()}
    maps = TransferMaps(tuple(header.layers), **placed) if header.kind == "transfer" else MedusaHeads(**placed)
    return Trained(header.kind, maps, header.chances, header.base, header.base_name, header.steps, tuple(header.right))


def _header(path: Path, found: Mapping[str, str] | None) -> _Header:
    """Return the header, if it is one of ours and valid."""
    says = found or {}
    form, kind = says.get("format", ""), says.get("kind", "")
    if form != FORMAT:
        which = f"in the format {form[:40]!r}" if form.startswith("ladechat") else "of something else"
        raise _refused(f"{path} holds tensors {which}, not in {FORMAT!r}.", "Give a file that ladechat has trained")
    if kind not in KINDS:
        message = f"{path} was trained for a method {kind[:40]!r}, which this ladechat does not know."
        raise _refused(message, "Give another file, or use a newer ladechat")
    try:
        layers, chances = _layers(json.loads(says["layers"]), kind), _chances(json.loads(says["chances"]))
        right = _right(json.loads(says.get("right", "[]")), len(chances))
        return _Header(kind, says["base"], says["base_name"], layers, chances, int(says["steps"]), right)
    except DAMAGE as error:
        raise _refused(f"{path} has a damaged header.", "Copy it again, or train anew") from error


def _layers(found: Any, kind: str) -> list[int]:
    """Return the entry `layers`: non-decreasing integers, at least one for hidden transfer, none for Medusa."""
    layers = [operator.index(layer) for layer in found]
    if layers != sorted(layers) or bool(layers) != (kind == "transfer") or (layers and layers[0] < 0):
        raise ValueError(f"No layers: {layers}")
    return layers


def _chances(found: Any) -> list[list[float]]:
    """Return the entry `chances`: `RANKS` numbers from 0 to 1 for each token ahead."""
    rows = [[float(chance) for chance in row] for row in found]
    sound = all(len(row) == RANKS and all(0 <= chance <= 1 for chance in row) for row in rows)
    if not sound or not 1 <= len(rows) <= MOST_STEPS_AHEAD:
        raise ValueError(f"No chances: {rows}")
    return rows


def _right(found: Any, ahead: int) -> list[float]:
    """Return the entry `right`: a number from 0 to 1 for each token ahead, or nothing."""
    right = [float(share) for share in found]
    if len(right) not in (0, ahead) or not all(0 <= share <= 1 for share in right):
        raise ValueError(f"No shares: {right}")
    return right


def _check_model(path: Path, header: _Header, base: str, depth: int) -> None:
    """Refuse maps or heads trained for another model."""
    if header.base != base:
        name = header.base_name[:80]
        message = f"{path} was trained for another model, {name}, with other weights than the one that is loaded."
        raise _refused(message, f"Use it with --model {name}, or train for this model")
    layers = header.layers
    if layers and (len(layers) != len(header.chances) or layers[-1] >= depth):
        message = f"{path} has maps at layers {str(layers)[:80]}, which do not fit {len(header.chances)} tokens ahead"
        raise _refused(f"{message} in a model of {depth} layers.", "Train anew")


def _check_shapes(path: Path, header: _Header, file: Any, width: int) -> None:
    """Refuse tensors of other shapes before they are read: they may not fit the memory."""
    ahead = len(header.chances)
    wanted = {"weights": [ahead, width, width], "biases": [ahead, width]}
    names = tuple(sorted(file.keys()))
    if names != TENSORS[header.kind]:
        message = f"{path} holds tensors called {str(names)[:80]}, not {TENSORS[header.kind]}."
        raise _refused(message, "Copy it again, or train anew")
    for name in names:
        part = file.get_slice(name)
        shape = part.get_shape()
        if shape != wanted[name] or part.get_dtype() not in ("F16", "BF16"):
            found = f"{part.get_dtype()} of shape {shape}"
            message = f"{path} holds {name} in {found}; this model needs them in 16 bits, of shape {wanted[name]}."
            raise _refused(message, "Train anew")


def _refused(message: str, what_to_do: str) -> LoadError:
    return LoadError("load_failed", message, f"{what_to_do}: ladechat train makes such files.")


@dataclass(frozen=True)
class Maps:
    """Maps and heads for one model.

    Attributes:
        by_kind: the maps and heads found, by kind.
        missing: for each other kind the reason why there are none, as a sentence.
    """

    by_kind: Mapping[str, Trained] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def load_maps(runner: ModelRunner, folder: Path, name: str, dtype: torch.dtype, named: Sequence[Path] = ()) -> Maps:
    """Read the maps and heads trained for a model: the named files, and for other kinds those of `find_trained`.

    An invalid file that was not named is left out, with a line in the log. Of two named ones the later one is used.

    Raises:
        LoadError: a named file is invalid, or its kind cannot be used with this model.
    """
    loop, reason = runner.loop, runner.capabilities.logits_only
    if loop is None or reason is not None:
        reason = reason or "Its passes give logits alone."
        if named:
            message = f"Nothing that was trained for hidden states can be used with {name}: {reason}"
            raise LoadError("load_failed", message, "Leave --maps out.")
        return Maps(missing=dict.fromkeys(KINDS, reason))
    base = fingerprint(folder)

    def read(path: Path) -> Trained:
        return read_trained(path, base, loop.depth, loop.width, runner.device, dtype)

    by_kind = {trained.kind: trained for trained in map(read, named)}
    how = f"--model {name} --out"
    missing = {
        kind: f"Nothing was trained for {name} yet; ladechat train {kind} {how} {kind}.safetensors does it."
        for kind in KINDS
    }
    for kind, path in find_trained(folder, base).items():
        if kind not in by_kind:
            try:
                trained = read(path)
                if trained.kind != kind:
                    message = f"{path} holds what was trained for {trained.kind}, not for {kind}."
                    raise LoadError("load_failed", message, f"Call it {trained.kind}.safetensors.")
                by_kind[kind] = trained
            except LoadError as error:
                missing[kind] = f"{error} {error.hint}"
                logger.warning("%s", missing[kind])
    return Maps(by_kind, {kind: why for kind, why in missing.items() if kind not in by_kind})
