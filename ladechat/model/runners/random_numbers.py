"""Detection of passes that draw random numbers, before they draw: they would change the draws of others."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class DrawsRandomNumbers(Exception):
    """An operation that was about to draw."""


class NoRandomNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """A context in which an operation of this thread that would draw raises `DrawsRandomNumbers`.

    Unlike `torch.random.fork_rng` it restores no generator state: other threads draw from the same generator.
    """

    def __torch_dispatch__(
        self, func: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags and not _drops_nothing(func, args, given):
            raise DrawsRandomNumbers(str(func))
        return func(*args, **given)


def _drops_nothing(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the operation is dropout, or attention with dropout, that is turned off."""
    values = {
        argument.name: argument.default_value for argument in func._schema.arguments if argument.has_default_value()
    }
    values |= dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | dict(kwargs)
    return any(name in values and not values[name] for name in ("dropout_p", "train", "training", "p"))
