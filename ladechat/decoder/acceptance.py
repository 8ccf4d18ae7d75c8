"""Acceptance of drafted tokens: Fu et al. 2024 (arXiv 2402.02057), section 3.2, over a tree of drafts."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from ladechat.decoder.sampler import Sampler
from ladechat.decoder.verify_mask import SlotTree


class Acceptance(NamedTuple):
    """The accepted slots and the emitted tokens of a pass.

    Attributes:
        path: the accepted slots, starting with the child of slot 0.
        tokens: their tokens, then the model's own next token unless the text ended inside a draft.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]

    @property
    def read_slots(self) -> tuple[int, ...]:
        """For each emitted token, the slot whose logits gave it: the slot of the token before. These are committed.

        An accepted slot has its final position and saw what plain decoding sees there, so its keys and values
        are valid as they are. Where the text ended inside a draft, the last accepted slot is not among these slots: no
        token was taken from its logits.
        """
        return (0, *self.path)[: len(self.tokens)]


def accept(
    tree: SlotTree, logits: Tensor, argmax: Sequence[int], sampler: Sampler, ends: Callable[[int], bool]
) -> Acceptance:
    """Follow the drafts as long as they agree with the model, and return the accepted slots and emitted tokens.

    Example: the last token is ``I``, the drafts are ``I → the → cat`` and ``I → a``, and the model chooses "the" after
    I and "dog" after "the". The path is the slot of "the", and the tokens are (the, dog).

    Args:
        tree: the slots of the pass.
        logits: (T, vocabulary) logits of the pass.
        argmax: (T,) the token with the largest logit in each slot.
        sampler: chooses the model's own next token after a slot; called once for each emitted token, in order.
        ends: returns whether the text ends with this token; also called once for each emitted token.
    """
    path: list[int] = []
    tokens: list[int] = []
    slot: int | None = 0
    ended = False
    while slot is not None and not ended:
        greedy = sampler.sampling.is_argmax
        tokens.append(sampler.take(argmax[slot]) if greedy else sampler.sample(logits[slot]))
        ended = ends(tokens[-1])
        slot = tree.child(slot, tokens[-1])
        if slot is not None:
            path.append(slot)
    return Acceptance(tuple(path), tuple(tokens))


def log_probabilities(
    logits: Tensor, slots: Sequence[int], tokens: Sequence[int], of_argmax: Sequence[float] | None = None
) -> tuple[float, ...]:
    """Return the natural log-probability of `tokens[i]` by the logits of slot `slots[i]`; -inf for one ruled out.

    Args:
        logits: (T, vocabulary).
        slots: the slot of each token.
        tokens: the token to look up in each of these slots.
        of_argmax: (T,) the log-probability of the argmax of each slot; given where all tokens are argmaxes.

    Raises:
        FloatingPointError: the logits are NaN or infinite, as happens where a model overflows in half precision.
    """
    if of_argmax is not None:
        found = tuple(of_argmax[slot] for slot in slots)
        usable = all(map(math.isfinite, found))
    else:  # row by row: faster than a gather for the few tokens of a step
        rows = zip(slots, tokens, strict=True)
        found = tuple(float(logits[slot].float().log_softmax(-1)[token]) for slot, token in rows)
        usable = not any(map(math.isnan, found))
    if not usable:
        raise FloatingPointError("the model's logits are not finite; another --dtype may help.")
    return found
