"""Shows the progress of a training: a bar with the latest figures on a terminal, else a line every 30 seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ladechat.terminal import say
from ladechat.train.estimate import in_time
from ladechat.train.held_out import Accuracy

SECONDS_BETWEEN_LINES = 30.0
SMOOTHING = 0.05
"""The weight of the latest loss in the loss that is shown."""


class TrainingReport:
    """Shows the progress of a stage: on a bar, or in lines where standard error is no terminal."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._lines = bar, bar.disable
        self._task = bar.add_task("", total=None, figures="")
        self._doing, self._total, self._begun, self._first, self._said = "", 0, 0.0, 0, 0.0
        self._loss: float | None = None
        self._accuracy = ""

    def begin(self, doing: str, total: int, done: int = 0) -> None:
        """Start a stage, of which `done` is done already."""
        self._doing, self._total, self._first, self._loss = doing, total, done, None
        self._begun = self._said = time.monotonic()
        self._bar.reset(self._task, description=doing, total=total, completed=done, figures="")
        self._say(done)

    def reach(self, done: int, figures: str = "") -> None:
        """Show how much of the stage is done."""
        self._bar.update(self._task, completed=done, figures=figures)
        now = time.monotonic()
        if now - self._said >= SECONDS_BETWEEN_LINES:
            left = (now - self._begun) / max(1, done - self._first) * max(0, self._total - done)
            self._say(done, f"; {figures}" if figures else "", f"; {in_time(left)} left")
            self._said = now

    def step(self, done: int, loss: float) -> None:
        """Show that a step is done, with this loss."""
        self._loss = loss if self._loss is None else self._loss + SMOOTHING * (loss - self._loss)
        self.reach(done, f"loss {self._loss:.3f} {self._accuracy}".rstrip())

    def accuracy(self, done: int, found: Accuracy) -> None:
        """Show the accuracy on held-out text after `done` steps."""
        self._accuracy = in_figures(found)
        self._say(done, f"; held out: {self._accuracy}")

    def _say(self, done: int, *more: str) -> None:
        if self._lines:
            say(f"{self._doing}: {done:,} of {self._total:,}{''.join(more)}")


def in_figures(found: Accuracy) -> str:
    """Return top-1 and top-5 of each position: t+2 .36/.60, t+3 …"""
    pairs = zip(found.top1, found.top5, strict=True)
    return ", ".join(f"t+{place} {one:.3f}/{five:.3f}" for place, (one, five) in enumerate(pairs, start=2))


@contextmanager
def report() -> Iterator[TrainingReport]:
    """Yield a report on standard error."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield TrainingReport(bar)
