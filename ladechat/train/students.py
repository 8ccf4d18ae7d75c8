"""The trained parts: maps of hidden transfer, and heads of Medusa. Each guesses the tokens after anchors."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ladechat.decoder.drafters.medusa import MedusaHeads
from ladechat.decoder.hidden import TransferMaps
from ladechat.train.chunks import Batch
from ladechat.train.features import Base, pseudo_pass, read
from ladechat.train.options import Recipe

ROWS_AT_ONCE = 256
"""The number of anchors whose logits are in memory at a time, where that can be chosen."""


@dataclass(frozen=True, slots=True)
class Guesses:
    """The guesses at some anchors."""

    states: Tensor  # (k, n, d), input hidden states of the output layer, with gradients
    targets: Tensor  # (k, n), the tokens of the text
    real: Tensor  # (k, n, d), the model's own hidden states for these tokens


class _Student:
    """A trained part. Its tensors, by name, are float32, whatever the model computes in."""

    tensors: dict[str, Tensor]

    def __init__(self, base: Base, recipe: Recipe) -> None:
        self._base, self._recipe = base, recipe

    def _own(self, name: str) -> Tensor:
        """Return a tensor in the type that the model computes in."""
        return self.tensors[name].to(self._base.dtype)


class TransferStudent(_Student):
    """The maps of hidden transfer. They start as the identity: a row begins as the state that it is made from."""

    def __init__(self, base: Base, recipe: Recipe) -> None:
        super().__init__(base, recipe)
        same = torch.eye(base.loop.width, device=base.device).repeat(recipe.ahead, 1, 1)
        self.tensors = {"weights": same.requires_grad_()}

    def guesses(self, batch: Batch) -> Iterator[Guesses]:
        """Yield the guesses at all anchors of a batch."""
        ahead = self._recipe.ahead
        context = read(self._base, batch.tokens, self._recipe.layers)
        done = pseudo_pass(self._base, context, batch, self.maps(), self._recipe.sight)
        yield Guesses(done.final, batch.targets(ahead), batch.at(context.final, range(1, ahead + 1)))

    def maps(self) -> TransferMaps:
        """Return the present maps, for a drafter."""
        return TransferMaps(self._recipe.layers, self._own("weights"))


class MedusaStudent(_Student):
    """The heads of Medusa-1. Their blocks start at zero: a head begins as the model's own output layer."""

    def __init__(self, base: Base, recipe: Recipe) -> None:
        super().__init__(base, recipe)
        width = base.loop.width
        weights = torch.zeros(recipe.ahead, width, width, device=base.device)
        biases = torch.zeros(recipe.ahead, width, device=base.device)
        self.tensors = {"weights": weights.requires_grad_(), "biases": biases.requires_grad_()}

    def guesses(self, batch: Batch) -> Iterator[Guesses]:
        """Yield the guesses in parts; `backward` may be called on each before the next."""
        steps = range(1, self._recipe.ahead + 1)
        final = read(self._base, batch.tokens, ()).final
        (states,), targets, real = batch.at(final, [0]), batch.targets(len(steps)), batch.at(final, steps)
        for start in range(0, len(states), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            yield Guesses(self.maps()(states[part]), targets[:, part], real[:, part])

    def maps(self) -> MedusaHeads:
        """Return the present heads, for a drafter."""
        return MedusaHeads(self._own("weights"), self._own("biases"))


Student = TransferStudent | MedusaStudent


def make_student(base: Base, recipe: Recipe) -> Student:
    """Return the untrained maps or heads of a recipe."""
    return TransferStudent(base, recipe) if recipe.method == "transfer" else MedusaStudent(base, recipe)
