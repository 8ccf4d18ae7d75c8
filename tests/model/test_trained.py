"""Files of what was trained for a model: written whole or not at all, and refused where they are not its own."""

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ladechat.decoder.drafters.medusa import MedusaHeads
from ladechat.decoder.hidden import TransferMaps
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.trained import (
    FORMAT,
    KINDS,
    MIB,
    Trained,
    find_trained,
    fingerprint,
    read_trained,
    trained_folder,
    write_trained,
)
from tests.made_up_maps import AHEAD, CHANCES, made_up
from tests.model.refusals import assert_refused

DEPTH, WIDTH = 3, 8
BASE = "0123456789abcdef" * 2
each_kind = pytest.mark.parametrize("kind", KINDS)


def of(kind: str, dtype: torch.dtype = torch.float16) -> Trained:
    trained = made_up(kind, DEPTH, WIDTH, dtype=dtype, base=BASE)
    return replace(trained, base_name="a model", steps=7, right=(0.7, 0.5, 0.25))


def read(
    path: Path, base: str = BASE, depth: int = DEPTH, width: int = WIDTH, dtype: torch.dtype = torch.float32
) -> Trained:
    return read_trained(path, base, depth, width, "cpu", dtype)


def tensors_of(trained: Trained) -> dict[str, torch.Tensor]:
    maps = trained.maps
    biases = {"biases": maps.biases} if isinstance(maps, MedusaHeads) else {}
    return {"weights": maps.weights, **biases}


@each_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_was_written_is_read_in_the_type_of_the_model(kind: str, dtype: torch.dtype, tmp_path: Path) -> None:
    trained = of(kind)
    write_trained(tmp_path / "folder" / "file", trained)
    back = read(tmp_path / "folder" / "file", dtype=dtype)
    assert replace(back, maps=trained.maps) == trained
    for name, tensor in tensors_of(back).items():
        assert tensor.dtype == dtype and torch.equal(tensor, tensors_of(trained)[name].to(dtype))
    if isinstance(trained.maps, TransferMaps):
        assert isinstance(back.maps, TransferMaps) and back.maps.layers == trained.maps.layers


@each_kind
def test_a_file_takes_16_bits_a_number(kind: str, tmp_path: Path) -> None:
    write_trained(tmp_path / "file", of(kind, torch.float32))
    numbers = AHEAD * WIDTH * (WIDTH + (kind == "medusa"))
    assert 2 * numbers < (tmp_path / "file").stat().st_size < 2 * numbers + 2000


def test_numbers_beyond_float16_are_kept_in_bfloat16(tmp_path: Path) -> None:
    large = TransferMaps((0,), torch.full((1, WIDTH, WIDTH), 2.0**20))
    write_trained(tmp_path / "file", replace(of("transfer"), maps=large, chances=CHANCES[:1], right=()))
    assert torch.equal(tensors_of(read(tmp_path / "file"))["weights"], large.weights)


@each_kind
def test_a_write_that_fails_leaves_what_was_there(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_trained(path, of(kind))

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            if name == "fsync":
                patched.setattr(os, "fsync", full)
            else:
                patched.setattr(Path, "replace", lambda *_: full(0))
            with pytest.raises(OSError, match="No space left"):
                write_trained(path, replace(of(kind), steps=8))
    assert read(path).steps == 7
    assert list(tmp_path.iterdir()) == [path]


@each_kind
def test_what_is_not_finite_is_not_written(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_trained(path, of(kind))
    spoilt = of(kind, torch.float32)
    spoilt.maps.weights[0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        write_trained(path, spoilt)
    assert read(path).steps == 7


# --- what is refused -------------------------------------------------------------------------------------------------


def rewritten(path: Path, tensors: dict[str, torch.Tensor] | None = None, **header: str | None) -> None:
    """Write a file anew, with other tensors or entries of its header; None leaves one out."""
    with safe_open(path, framework="pt") as file:
        own = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no dictionary
        strings = {**file.metadata(), **header}
    save_file(tensors or own, path, {name: text for name, text in strings.items() if text is not None})


def spoil_a_number(path: Path) -> None:
    weights = of("transfer").maps.weights.clone()
    weights[1, 2, 3] = torch.nan
    rewritten(path, {"weights": weights})


def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Something else in the place of the file."""

    def spoil(path: Path) -> None:
        path.unlink()
        make(path)

    return spoil


NAN_CHANCES = json.dumps([[float("nan"), *row[1:]] for row in CHANCES])
SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-100]), "not all of it is there"),
    "cut off in its header": (lambda path: path.write_bytes(path.read_bytes()[:40]), "no safetensors file"),
    "empty": (lambda path: path.write_bytes(b""), "no safetensors file"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps({"weights": [1.0]})), "no safetensors file"),
    "a checkpoint of torch": (lambda path: torch.save({"weights": torch.ones(2)}, path), "no safetensors file"),
    "a text": (lambda path: path.write_text("Nothing was trained here.\n" * 20), "no safetensors file"),
    "not there": (lambda path: path.unlink(), "cannot be read: No such file"),
    "a pipe": (instead(os.mkfifo), "not a file"),
    "a folder": (instead(Path.mkdir), "not a file"),
    "not finite": (spoil_a_number, "not finite"),
    "tensors of somebody else": (lambda path: rewritten(path, format=None), "something else"),
    "a later format": (lambda path: rewritten(path, format="ladechat-trained-9"), "'ladechat-trained-9'"),
    "another method": (lambda path: rewritten(path, kind="eagle"), "'eagle'"),
    "no kind": (lambda path: rewritten(path, kind=None), "does not know"),
    "no layers": (lambda path: rewritten(path, layers="[]"), "damaged header"),
    "layers that fall": (lambda path: rewritten(path, layers="[1, 2, 0]"), "damaged header"),
    "layers below the first": (lambda path: rewritten(path, layers="[-1, 0, 1]"), "damaged header"),
    "layers in words": (lambda path: rewritten(path, layers='["one", "two"]'), "damaged header"),
    "a nest of lists": (lambda path: rewritten(path, layers="[" * 100_000), "damaged header"),
    "a layer too many": (lambda path: rewritten(path, layers="[0, 0, 1, 1]"), "do not fit 3 tokens ahead"),
    "chances of 400 digits": (lambda path: rewritten(path, chances=f"[[{'9' * 400}]]"), "damaged header"),
    "no base": (lambda path: rewritten(path, base=None), "damaged header"),
    "no steps": (lambda path: rewritten(path, steps="many"), "damaged header"),
    "no chances": (lambda path: rewritten(path, chances="[]"), "damaged header"),
    "chances that are none": (lambda path: rewritten(path, chances=json.dumps([[2.0] * 8] * 3)), "damaged header"),
    "chances that are no numbers": (lambda path: rewritten(path, chances=NAN_CHANCES), "damaged header"),
    "too few chances": (lambda path: rewritten(path, chances=json.dumps([[0.5] * 7] * 3)), "damaged header"),
    "shares that are none": (lambda path: rewritten(path, right="[0.5, 0.5, 1.5]"), "damaged header"),
    "too few shares": (lambda path: rewritten(path, right="[0.5]"), "damaged header"),
    "other tensors": (lambda path: rewritten(path, {"head": torch.ones(1)}), "called ('head',)"),
    "flat": (lambda path: rewritten(path, {"weights": torch.ones(9, dtype=torch.float16)}), "of shape [9]"),
    "32 bits": (lambda path: rewritten(path, {"weights": torch.ones(AHEAD, WIDTH, WIDTH)}), "F32"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("fault", SPOILT)
def test_what_is_no_sound_file_is_refused_in_a_sentence(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_trained(path, of("transfer"))
    spoil, said = SPOILT[fault]
    spoil(path)
    assert str(path) in str(assert_refused(lambda: read(path), "load_failed", said))


@each_kind
def test_what_was_trained_for_another_model_is_refused_with_its_name(kind: str, tmp_path: Path) -> None:
    write_trained(tmp_path / "file", of(kind))
    error = assert_refused(lambda: read(tmp_path / "file", base="f" * 32), "load_failed", "another model, a model,")
    assert "--model a model" in error.hint


@each_kind
def test_a_model_of_another_width_is_told_of_with_both_shapes(kind: str, tmp_path: Path) -> None:
    write_trained(tmp_path / "file", of(kind))
    with pytest.raises(LoadError, match=r"of shape \[3, 8.*of shape \[3, 9"):
        read(tmp_path / "file", width=9)


def test_a_layer_beyond_the_last_is_refused(tmp_path: Path) -> None:
    write_trained(tmp_path / "file", replace(of("transfer"), maps=TransferMaps((0, 1, 2), of("transfer").maps.weights)))
    assert read(tmp_path / "file", depth=3)
    with pytest.raises(LoadError, match="in a model of 2 layers"):
        read(tmp_path / "file", depth=2)


def test_a_file_of_an_earlier_version_lacks_how_often_guesses_are_right(tmp_path: Path) -> None:
    write_trained(tmp_path / "file", of("transfer"))
    rewritten(tmp_path / "file", right=None)
    assert read(tmp_path / "file").right == ()


def test_a_header_says_what_it_is(tmp_path: Path) -> None:
    write_trained(tmp_path / "file", of("medusa"))
    with safe_open(tmp_path / "file", framework="pt") as file:
        header = file.metadata()
    assert header["format"] == FORMAT
    assert {name: header[name] for name in ("kind", "base", "base_name", "layers", "steps")} == {
        "kind": "medusa", "base": BASE, "base_name": "a model", "layers": "[]", "steps": "7",
    }  # fmt: skip


# --- whose they are, and where ---------------------------------------------------------------------------------------


def checkpoint(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(content)
    return folder


def test_a_fingerprint_is_that_of_the_weights_and_of_nothing_beside_them(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "one", b"weights" * MIB)
    own = fingerprint(folder)
    assert len(own) == 32 and int(own, 16)
    write_trained(folder / "transfer.safetensors", of("transfer"))
    (folder / "config.json").write_text("{}")
    assert fingerprint(folder) == own == fingerprint(checkpoint(tmp_path / "copy", b"weights" * MIB))
    for place in (0, -1):
        changed = bytearray(b"weights" * MIB)
        changed[place] += 1
        assert fingerprint(checkpoint(tmp_path / "changed", bytes(changed))) != own
    assert fingerprint(checkpoint(tmp_path / "longer", b"weights" * (MIB + 1))) != own


def test_shards_and_a_gguf_file_have_fingerprints_too(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for number in (1, 2):
        (tmp_path / f"model-{number}.safetensors").write_bytes(b"one")
    both = fingerprint(tmp_path)
    (tmp_path / "model-2.safetensors").write_bytes(b"two")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert len({both, fingerprint(tmp_path), fingerprint(tmp_path / "model.gguf")}) == 3
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(LoadError, match="cannot be read"):
        fingerprint(tmp_path)


def test_files_are_found_beside_the_weights_and_in_the_data_folder(tmp_path: Path) -> None:
    folder, base = checkpoint(tmp_path / "model", b"weights"), "e" * 32
    (tmp_path / "model" / "model.gguf").write_bytes(b"GGUF")
    assert find_trained(folder, base) == {}
    kept = trained_folder(base)
    for kind in KINDS:
        write_trained(kept / f"{kind}.safetensors", of(kind))
    write_trained(folder / "medusa.safetensors", of("medusa"))
    found = {"transfer": kept / "transfer.safetensors", "medusa": folder / "medusa.safetensors"}
    assert find_trained(folder, base) == find_trained(folder / "model.gguf", base) == found
    assert find_trained(folder, "d" * 32) == {"medusa": found["medusa"]}
