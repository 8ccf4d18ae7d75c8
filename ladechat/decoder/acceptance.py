"""Which drafted tokens the model confirms: Fu et al. 2024 (arXiv 2402.02057), section 3.2, over a tree of drafts."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from ladechat.decoder.sampler import Sampler
from ladechat.decoder.verify_mask import SlotTree


class Acceptance(NamedTuple):
    """The result of a pass.

    Attributes:
        path: the accepted slots, from the child of slot 0 on.
        tokens: their tokens and, unless the text ended inside a draft, the model's own next one.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]

    @property
    def read_slots(self) -> tuple[int, ...]:
        """The slot whose logits gave each token: that of the token before it. Exactly these are committed.

        An accepted slot stands at its final position and saw what plain decoding sees there: its keys fit as they are.
        Where the text ended inside a draft, the last accepted slot is not among them: no token was read under it.
        """
        return (0, *self.path)[: len(self.tokens)]


def accept(
    tree: SlotTree, logits: Tensor, argmax: Sequence[int], sampler: Sampler, ends: Callable[[int], bool]
) -> Acceptance:
    """Follow the drafts for as long as they say what the model says.

    With ``I`` the last token, drafts ``I → the → cat`` and ``I → a``, and a model that says "the" after I and "dog"
    after "the": the path is the slot of "the", and the tokens are (the, dog).

    Args:
        tree: the slots of the pass.
        logits: (T, vocabulary), of the pass.
        argmax: (T,) the token with the largest logit under every slot.
        sampler: takes the model's own next token after a slot, once for each token that is emitted, in order.
        ends: whether the text ends with this token. Called once for each emitted token, too.
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
    """The natural log-probability of `tokens[i]` under slot `slots[i]`; -inf for one that the model rules out.

    Args:
        logits: (T, vocabulary).
        slots: the slot of each token.
        tokens: the token whose log-probability is wanted under each of these slots.
        of_argmax: (T,) the log-probability of the argmax under every slot, where all tokens are argmaxes.

    Raises:
        FloatingPointError: the logits are not numbers, as happens where a model overflows in half precision.
    """
    if of_argmax is not None:
        found = tuple(of_argmax[slot] for slot in slots)
        usable = all(map(math.isfinite, found))
    else:  # row by row: for the few tokens of a step that is faster than to gather them
        rows = zip(slots, tokens, strict=True)
        found = tuple(float(logits[slot].float().log_softmax(-1)[token]) for slot, token in rows)
        usable = not any(map(math.isnan, found))
    if not usable:
        raise FloatingPointError("the model's logits are not finite; another --dtype may help.")
    return found
