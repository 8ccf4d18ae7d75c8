"""Measures guesses on text that was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ladechat.decoder.drafters.heads import RANKS
from ladechat.train.chunks import Batch
from ladechat.train.features import Base
from ladechat.train.losses import guess_loss
from ladechat.train.students import Student


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy at each position ahead, the nearest first.

    Attributes:
        loss: see `guess_loss`.
        top1: (k,) how often the most probable guess was right.
        top5: (k,) how often one of the five most probable ones was.
        chances: (k, `RANKS`) how often the guess of each rank was right, counted where every earlier position had its
            token among the `RANKS` guesses: only by such a path does a tree of drafts reach a position.
        anchors: the number of anchors.
    """

    loss: float
    top1: tuple[float, ...]
    top5: tuple[float, ...]
    chances: list[list[float]]
    anchors: int


@torch.no_grad()
def measure(student: Student, base: Base, batches: Sequence[Batch], kl: bool = False) -> Accuracy:
    """Measure the guesses at all anchors of some batches."""
    losses, ranks = [], []
    for batch in batches:
        for some in student.guesses(batch.to(base.device)):
            logits = base.loop.read(some.states)
            real = base.loop.read(some.real) if kl else None
            losses.append((float(guess_loss(logits, some.targets, real)), some.targets.shape[1]))
            ranks.append(_ranks(logits, some.targets).cpu())
    found = torch.cat(ranks, 1)
    anchors = found.shape[1]
    return Accuracy(
        loss=sum(loss * count for loss, count in losses) / anchors,
        top1=tuple((found < 1).float().mean(1).tolist()),
        top5=tuple((found < 5).float().mean(1).tolist()),
        chances=_chances(found),
        anchors=anchors,
    )


def _ranks(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the rank of each target among the most probable guesses, (k, n), from 0; `RANKS` if it is none of them."""
    best = logits.topk(min(RANKS, logits.shape[-1]), -1).indices
    hits = best == targets[..., None]
    return torch.where(hits.any(-1), hits.int().argmax(-1), RANKS)


def _chances(ranks: torch.Tensor) -> list[list[float]]:
    """Return `Accuracy.chances`. A position that no path reaches has those of all anchors."""
    chances = []
    reached = torch.ones_like(ranks[0], dtype=torch.bool)
    for own in ranks:
        seen = own[reached] if bool(reached.any()) else own
        counts = torch.bincount(seen, minlength=RANKS + 1)[:RANKS]
        chances.append((counts / len(seen)).tolist())
        reached = reached & (own < RANKS)
    return chances
