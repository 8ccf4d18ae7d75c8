"""`ladechat train` as a whole, on a tiny model."""

import json
import math
import os
import signal
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors import safe_open
from transformers import LlamaConfig
from typer.testing import CliRunner, Result

from ladechat.model.trained import fingerprint, read_trained
from ladechat.shell import cli
from ladechat.train import setup
from ladechat.train.losses import guess_loss
from ladechat.train.trainer import Training
from tests.packed import tiny_file

FEW = ["--tokens", "900", "--length", "24", "--batch", "2", "--anchors", "8", "--rate", "0.003", "--device", "cpu"]


def ladechat(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, ["train", *map(str, arguments)])


def content(file: Path) -> tuple[dict[str, str], dict[str, list[object]]]:
    """The header and the numbers. The order of a header is another in each file: safetensors shuffles it."""
    with safe_open(file, "pt") as opened:
        return opened.metadata(), {name: opened.get_tensor(name).tolist() for name in opened.keys()}  # noqa: SIM118


@pytest.mark.parametrize("method", ["transfer", pytest.param("medusa", marks=pytest.mark.full)])
def test_a_training_makes_a_file_that_fits_its_model(checkpoint: Path, tmp_path: Path, method: str) -> None:
    out = tmp_path / f"{method}.safetensors"
    result = ladechat(method, "--model", checkpoint, "--out", out, "--steps", "4", *FEW)
    assert result.exit_code == 0, result.output
    trained = read_trained(out, fingerprint(checkpoint), 3, 64, torch.device("cpu"), torch.float32)
    assert (trained.kind, trained.steps, len(trained.chances)) == (method, 4, 3)
    assert trained.base_name == checkpoint.name, "a file that is handed on does not say where the model was"
    assert "t+2" in result.stdout and "Training takes about" in result.stderr
    assert not (tmp_path / f"{out.name}.checkpoint").exists()
    again = ladechat(method, "--model", checkpoint, "--out", out, "--steps", "4", *FEW)
    assert again.exit_code == 2 and "exists already" in again.stderr
    other = tmp_path / "other.safetensors"
    text = tmp_path / f"{out.name}.text.jsonl"
    result = ladechat(method, "--model", checkpoint, "--out", other, "--text", text, "--steps", "4", *FEW)
    assert result.exit_code == 0, result.output
    assert content(other) == content(out)


@pytest.mark.full
def test_it_goes_on_where_it_was_stopped(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, stopped = tmp_path / "whole.safetensors", tmp_path / "stopped.safetensors"
    options = ("--model", checkpoint, "--steps", "6", *FEW)
    assert ladechat("transfer", "--out", whole, *options).exit_code == 0
    with monkeypatch.context() as patched:
        advance = Training.advance

        def pressed(one: Training) -> float:
            if one.step == 3 and one.recipe.text:
                os.kill(os.getpid(), signal.SIGINT)
            return advance(one)

        patched.setattr(Training, "advance", pressed)
        result = ladechat("transfer", "--out", stopped, *options)
    assert result.exit_code == 130
    assert "step 4 of 6 is kept" in result.stderr.replace("\n", " ")
    other = ladechat("transfer", "--out", stopped, *options, "--seed", "1")
    assert other.exit_code == 2 and other.stderr.count("\n") <= 3
    assert ladechat("transfer", "--out", stopped, *options).exit_code == 0
    assert content(stopped) == content(whole)


@pytest.mark.full
def test_a_sweep_writes_figures_and_a_picture(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep.json"
    options = ("--model", checkpoint, "--out", out, "--steps", "3", "--layers", "0,2", *FEW)
    result = ladechat("sweep", *options)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_bytes())
    assert len(found["runs"]) == 6
    for run in found["runs"]:
        assert len(run["top1"]) == 3
        assert [len(row) for row in run["similarity"]] == [3 - run["layer"]] * 3
        assert all(-1.001 <= value <= 1.001 for row in run["similarity"] for value in row)
    ElementTree.fromstring((tmp_path / "sweep.json.svg").read_text())
    assert "without" in result.stdout and "sight" in result.stdout  # in a column's head, which may be wrapped
    before = out.read_bytes()
    assert ladechat("sweep", *options).exit_code == 0
    assert out.read_bytes() == before
    assert ladechat("sweep", *options, "--rate", "0.01").exit_code == 2


@pytest.mark.parametrize("method", ["transfer", "medusa", "sweep"])
def test_an_estimate_writes_nothing(checkpoint: Path, tmp_path: Path, method: str) -> None:
    out = tmp_path / ("out.json" if method == "sweep" else "out.safetensors")
    result = ladechat(method, "--model", checkpoint, "--out", out, "--estimate", *FEW)
    assert result.exit_code == 0, result.output
    assert "memory on cpu" in result.stdout and "Training takes about" in result.stdout
    assert not list(tmp_path.iterdir())


def test_a_sweep_is_estimated_alike_from_the_model_and_from_its_shape_alone(checkpoint: Path, tmp_path: Path) -> None:
    """By its largest training, the one by divergence at the lowest layer: it has the most logits in memory."""
    shape = tmp_path / "shape"
    shape.mkdir()
    (shape / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    parts = []
    for model in (checkpoint, shape):
        result = ladechat("sweep", "--model", model, "--out", tmp_path / "out.json", "--estimate", *FEW)
        assert result.exit_code == 0, result.output
        parts.append(result.stdout.partition("(what learns")[2].partition(")")[0])
    assert parts[0] == parts[1] and "logits" in parts[0]


def test_memory_of_7b_is_estimated_from_its_shape(tmp_path: Path) -> None:
    LlamaConfig(dtype="float16").save_pretrained(tmp_path)
    result = ladechat(
        "transfer", "--model", tmp_path, "--out", tmp_path / "o.safetensors", "--estimate", "--device", "cpu"
    )
    assert result.exit_code == 0, result.output
    assert "27.0 GB" in result.stdout  # 6.74 billion weights in float32


def test_what_does_not_fit_is_refused(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.safetensors"
    for name, value in (("free_memory", lambda device: 1000), ("disk", 1000)):
        with monkeypatch.context() as patched:
            if name == "disk":
                usage = type("Usage", (), {"free": value})
                patched.setattr("shutil.disk_usage", lambda folder, usage=usage: usage)
            else:
                patched.setattr(setup, name, value)
            result = ladechat("transfer", "--model", checkpoint, "--out", out, *FEW)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.output
        assert "Training needs" in result.stderr or "Training writes" in result.stderr
        assert not list(tmp_path.iterdir())


def test_nothing_is_trained_for_a_gguf_file_which_llama_cpp_computes(tmp_path: Path) -> None:
    result = ladechat("transfer", "--model", tiny_file(0, kind=Kind.Q8_0), "--out", tmp_path / "o.safetensors", *FEW)
    assert (result.exit_code, result.stdout) == (2, "") and result.stderr.count("\n") == 1
    assert "llama.cpp gives no hidden states" in result.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("transfer", "--out", "x.bin"), ".safetensors"),
        (("sweep", "--out", "x.safetensors"), ".json"),
        (("transfer", "--out", "nowhere/x.safetensors"), "no folder"),
        (("transfer", "--out", "x.safetensors", "--loss", "mse"), "no loss"),
        (("transfer", "--out", "x.safetensors", "--layers", "a,b"), "no layers"),
        (("transfer", "--out", "x.safetensors", "--layers", "2,1,0"), "fall"),
        (("transfer", "--out", "x.safetensors", "--layers", "1,1,9"), "layers 0 to 2"),
        (("transfer", "--out", "x.safetensors", "--layers", "1,1"), "one for each"),
        (("transfer", "--out", "x.safetensors", "--steps", "0"), "--steps"),
        (("transfer", "--out", "x.safetensors", "--rate", "nan"), "--rate"),
        (("transfer", "--out", "x.safetensors", "--temperature", "-1"), "--temperature"),
        (("transfer", "--out", "x.safetensors", "--text", "nowhere.txt"), "cannot be read"),
        (("medusa", "--out", "x.safetensors", "--length", "5000"), "context"),
        (("medusa", "--out", "x.safetensors", "--minutes", "0"), "--minutes"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = ladechat(*options, "--model", checkpoint, "--device", "cpu")
    assert result.exit_code == 2 and says in result.stderr, result.output
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.output


def test_a_training_that_diverges_keeps_its_checkpoint(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.safetensors"
    monkeypatch.setattr(setup.Setup, "time_line", lambda setup: "")
    monkeypatch.setattr("ladechat.train.trainer.guess_loss", lambda *given: guess_loss(*given) * math.nan)
    result = ladechat("transfer", "--model", checkpoint, "--out", out, "--text", _text(tmp_path), *FEW)
    assert result.exit_code == 1, result.output
    assert "at step 1 the loss was not a number" in result.stderr and "smaller --rate" in result.stderr
    assert (tmp_path / f"{out.name}.checkpoint").exists() and not out.exists()


def _text(folder: Path) -> Path:
    path = folder / "own.txt"
    path.write_text("one two three four five six seven " * 100, encoding="utf-8")
    return path
