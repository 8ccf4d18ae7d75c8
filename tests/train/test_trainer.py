"""Training: only the maps change, it gets better, it stops and goes on, and what goes wrong loses nothing."""

import errno
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ladechat.decoder.drafters.heads import RANKS
from ladechat.train.estimate import Shape, operations
from ladechat.train.held_out import Accuracy
from ladechat.train.losses import guess_loss, weights
from ladechat.train.options import Recipe, TrainRefused
from ladechat.train.trainer import Diverged, Training, TrainingInterrupted, rate_factor, train
from tests.tiny import random_model
from tests.train.tiny import recipe, training
from tests.waiting import brings

METHODS = ["transfer", "medusa"]


def of_method(method: str, **changes: Any) -> Recipe:
    layers = (1, 1, 2) if method == "transfer" else (0, 0, 0)
    return recipe(method=method, layers=layers, **changes)


def quietly(one: Training, path: Path, **options: Any) -> list[Accuracy]:
    seen: list[Accuracy] = []
    train(one, path, 1e9, lambda step, loss: None, lambda step, found: seen.append(found), **options)
    return seen


def same(one: Training, other: Training) -> bool:
    return all(torch.equal(tensor, other.student.tensors[name]) for name, tensor in one.student.tensors.items())


@pytest.mark.parametrize("loss", ["ce", "kl"])
@pytest.mark.parametrize("method", METHODS)
def test_the_loss_falls_and_only_the_maps_change(method: str, loss: str) -> None:
    model = random_model(0)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    one = training(of_method(method, steps=40, loss=loss, rate=1e-2), model)
    first = one.accuracy()
    while one.step < one.recipe.steps:
        one.advance()
    assert one.accuracy().loss < first.loss
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(method: str, tmp_path: Path) -> None:
    whole = training(of_method(method))
    quietly(whole, tmp_path / "whole")
    path = tmp_path / "stopped"
    for stop_at in (3, 6):
        part = training(of_method(method))
        if path.exists():
            part.resume(path)
        with pytest.raises(TrainingInterrupted):
            quietly(part, path, stop=lambda part=part, stop_at=stop_at: part.step >= stop_at)
    last = training(of_method(method))
    last.resume(path)
    assert last.step == 6
    quietly(last, path)
    assert last.step == 8 and same(last, whole)


def test_checkpoints_come_by_the_clock_and_measure(tmp_path: Path) -> None:
    now = iter(range(1000))
    seen: list[int] = []
    train(training(), tmp_path / "c", 3, lambda *_: None, lambda step, _: seen.append(step), clock=lambda: next(now))
    assert len(seen) >= 2


def test_a_loss_that_is_no_number_leaves_the_checkpoint_and_the_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, path = training(), tmp_path / "c"
    for _ in range(2):
        one.advance()
    one.save(path)
    kept, maps = path.read_bytes(), one.student.tensors["weights"].detach().clone()
    monkeypatch.setattr("ladechat.train.trainer.guess_loss", lambda *given: guess_loss(*given) * math.nan)
    with pytest.raises(Diverged, match="step 3"):
        quietly(one, path)
    assert path.read_bytes() == kept
    assert torch.equal(one.student.tensors["weights"], maps)


def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, path = training(), tmp_path / "c"
    one.advance()
    one.save(path)
    kept = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    one.advance()
    with pytest.raises(OSError, match="No space"):
        one.save(path)
    assert path.read_bytes() == kept
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_checkpoints_of_something_else_are_refused(tmp_path: Path) -> None:
    one, path = training(), tmp_path / "c"
    one.advance()
    one.save(path)
    with pytest.raises(TrainRefused, match="another rate"):
        training(recipe(rate=1e-4)).resume(path)
    with pytest.raises(TrainRefused, match="another layers"):
        training(recipe(layers=(0, 1, 2))).resume(path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"\x80\x04]q\x00.", b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(TrainRefused, match="begin anew"):
            training().resume(path)


def test_chances_are_of_what_was_measured() -> None:
    one = training()
    found = one.accuracy()
    assert len(found.chances) == 3 and all(len(row) == RANKS for row in found.chances)
    assert found.chances[0][0] == pytest.approx(found.top1[0])
    assert sum(found.chances[0][:5]) == pytest.approx(found.top5[0])
    assert all(0 <= chance <= 1 for row in found.chances for chance in row)


def test_nearer_guesses_weigh_more() -> None:
    assert weights(3).tolist() == pytest.approx([1 / 2.44, 0.8 / 2.44, 0.64 / 2.44])
    guesses = torch.randn(3, 5, 11)
    targets = torch.randint(11, (3, 5))
    each = [torch.nn.functional.cross_entropy(guesses[step], targets[step]) for step in range(3)]
    expected = sum(weight * loss for weight, loss in zip(weights(3), each, strict=True))
    assert float(guess_loss(guesses, targets)) == pytest.approx(float(expected))
    assert float(guess_loss(guesses, targets, guesses)) == pytest.approx(0, abs=1e-6)


def test_the_rate_rises_and_falls() -> None:
    factors = [rate_factor(step, 100) for step in range(100)]
    assert factors[0] == 0.1 and factors[9] == 1.0 and factors[99] < 0.01
    assert factors[10:] == sorted(factors[10:], reverse=True)


WORKER = """
import sys
from pathlib import Path
from tests.train.tiny import recipe, training
from ladechat.train.trainer import train
import torch
torch.set_num_threads(1)
path = Path(sys.argv[1])
one = training(recipe(steps=400))
if path.exists():
    one.resume(path)
train(one, path, 0.0 if len(sys.argv) > 2 else 1e9, lambda *given: None, lambda *given: None)
"""


@pytest.mark.full
def test_a_run_that_was_killed_ends_as_one_that_was_not(tmp_path: Path) -> None:
    def start(*given: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", WORKER, *given])

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(str(whole)).wait() == 0
    for _ in range(3):
        before = written(killed)
        with brings(lambda before=before: written(killed) != before):  # type: ignore[misc]  # of this round
            worker = start(str(killed), "often")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    assert start(str(killed)).wait() == 0
    assert content(killed) == content(whole)


def written(path: Path) -> int:
    """When; 0 where nothing is."""
    return path.stat().st_mtime_ns if path.exists() else 0


def content(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header of a file of tensors, whose entries the library writes in any order, and the bytes behind it."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


@pytest.mark.parametrize(
    ("method", "layers"),
    [("transfer", (0, 0, 0)), ("transfer", (1, 1, 1)), ("transfer", (0, 1, 2)), ("medusa", (0, 0, 0))],
)
def test_the_work_of_a_step_is_known_from_shapes(method: str, layers: tuple[int, ...]) -> None:
    of = recipe(method=method, layers=layers, batch=4, length=44, anchors=16)
    model = random_model(0, attn_implementation="eager")  # the counter does not know what the other one does on a CPU
    one = training(of, model)
    with FlopCounterMode(display=False) as counter:
        one.advance()
    assert operations(Shape.of(model.config), of) == pytest.approx(counter.get_total_flops(), rel=0.1)
