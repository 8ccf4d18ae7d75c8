"""Trains maps or heads of a frozen model; can be stopped and resumed at any step."""

import math
import time
from collections.abc import Callable
from pathlib import Path

import torch

from ladechat.train.checkpoint import read_checkpoint, write_checkpoint
from ladechat.train.chunks import Chunks
from ladechat.train.features import Base
from ladechat.train.held_out import Accuracy, measure
from ladechat.train.losses import guess_loss
from ladechat.train.options import Recipe
from ladechat.train.students import make_student

WARM_UP = 0.1
"""The fraction of the steps in which the learning rate rises; then it falls as a cosine, as in Medusa-1's trainer."""

LARGEST_NORM = 1.0
"""The norm to which the gradients of a step are clipped."""

CHUNKS_IN_BETWEEN = 16
"""The number of held-out chunks for measurements during training; at its end all are used."""


class Diverged(FloatingPointError):
    """A loss or gradient is not finite."""


class TrainingInterrupted(Exception):
    """Training was stopped on request, and its checkpoint is written."""


class Training:
    """A training in progress.

    Attributes:
        student: the trained part.
        step: the number of steps done.
    """

    def __init__(self, base: Base, recipe: Recipe, chunks: Chunks) -> None:
        self._base, self.recipe, self._chunks = base, recipe, chunks
        self.student = make_student(base, recipe)
        # No weight decay: zero is no better a map than any other.
        self._optimiser = torch.optim.AdamW(self.student.tensors.values(), lr=recipe.rate, weight_decay=0.0)
        self.step = 0

    def advance(self) -> float:
        """Run one step, and return its loss.

        Raises:
            Diverged: the loss or its gradient is not finite; nothing was changed.
        """
        recipe = self.recipe
        batch = self._chunks.step(recipe.seed, self.step, recipe.batch).to(self._base.device)
        self._optimiser.zero_grad(set_to_none=True)
        total, anchors = 0.0, batch.anchors.numel()
        for some in self.student.guesses(batch):
            real = self._base.loop.read(some.real).detach() if recipe.loss == "kl" else None
            loss = guess_loss(self._base.loop.read(some.states), some.targets, real)
            loss = loss * (some.targets.shape[1] / anchors)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        norm = torch.nn.utils.clip_grad_norm_(self.student.tensors.values(), LARGEST_NORM)
        if not math.isfinite(total) or not bool(norm.isfinite()):
            raise Diverged(f"at step {self.step + 1} the loss was not a number")
        for group in self._optimiser.param_groups:
            group["lr"] = recipe.rate * rate_factor(self.step, recipe.steps)
        self._optimiser.step()
        self.step += 1
        return total

    def accuracy(self, most: int | None = None) -> Accuracy:
        """Measure the guesses on all held-out chunks, or on `most` of them."""
        batches = self._chunks.evaluation(self.recipe.batch, most)
        return measure(self.student, self._base, batches, self.recipe.loss == "kl")

    def save(self, path: Path) -> None:
        """Save the training, see `write_checkpoint`."""
        write_checkpoint(path, self.recipe, self.step, self.student.tensors, self._optimiser)

    def resume(self, path: Path) -> None:
        """Resume from a checkpoint, see `read_checkpoint`."""
        self.step = read_checkpoint(path, self.recipe, self.student.tensors, self._optimiser)


def rate_factor(step: int, steps: int) -> float:
    """Return the factor of the learning rate in a step, counted from 0."""
    warm = max(1, round(WARM_UP * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(
    training: Training,
    checkpoint: Path,
    seconds: float,
    on_step: Callable[[int, float], None],
    on_accuracy: Callable[[int, Accuracy], None],
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Train to the end, with a checkpoint and a measurement on held-out text every so many seconds.

    Calls `on_step` after each step with its number and loss, and `on_accuracy` after each measurement.

    Raises:
        TrainingInterrupted: `stop` returned true; the checkpoint holds all steps.
        Diverged: see `Training.advance`; the checkpoint holds an earlier step.
        OSError: the checkpoint cannot be written; the earlier one is still there.
    """
    latest = clock()
    while training.step < training.recipe.steps:
        if stop():
            training.save(checkpoint)
            raise TrainingInterrupted
        loss = training.advance()
        on_step(training.step, loss)
        if clock() - latest >= seconds:
            training.save(checkpoint)
            on_accuracy(training.step, training.accuracy(CHUNKS_IN_BETWEEN))
            latest = clock()
    training.save(checkpoint)
