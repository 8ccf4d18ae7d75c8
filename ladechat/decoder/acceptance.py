"""Which drafted tokens the model confirms: Fu et al. 2024 (arXiv 2402.02057), section 3.2, over a tree of guesses."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from ladechat.decoder.candidate_tree import ROOT, CandidateTree


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The outcome of a step: the accepted `path` of nodes, its tokens and, unless it `ended`, the model's own next one.

    Where the text ends inside a guess, the last token is a node's.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]
    ended: bool


def accept(tree: CandidateTree, choose: Callable[[int], int], ends: Callable[[int], bool]) -> Acceptance:
    """Follow the guesses for as long as they say what the model says.

    Args:
        tree: the guesses.
        choose: the model's own next token after a node (or `ROOT`). Called exactly once for each token that is emitted,
            in order: the last of them is the bonus token, which no guess had to foresee.
        ends: whether the text ends with this token. Called once for each emitted token, too.
    """
    path: list[int] = []
    tokens: list[int] = []
    node: int | None = ROOT
    ended = False
    while node is not None and not ended:
        tokens.append(choose(node))
        ended = ends(tokens[-1])
        node = tree.child(node, tokens[-1])
        if node is not None:
            path.append(node)
    return Acceptance(tuple(path), tuple(tokens), ended)


def log_probabilities(logits: torch.Tensor, rows: Sequence[int], tokens: Sequence[int]) -> tuple[float, ...]:
    """The natural log-probability of `tokens[i]` under row `rows[i]` of `logits` (T, vocabulary).

    It is -inf for a token that the model rules out and a processor has forced.

    Raises:
        FloatingPointError: the logits are not numbers, as happens where a model overflows in half precision.
    """
    chosen = logits[list(rows)].float()
    picked = chosen.gather(1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0]
    whole = chosen.logsumexp(-1)
    if not bool(whole.isfinite().all()):
        raise not_finite()
    found: list[float] = (picked - whole).tolist()
    return tuple(found)


def finite(logprobs: Iterable[float]) -> tuple[float, ...]:
    """Log-probabilities of likeliest tokens, which are numbers if the logits are.

    Raises:
        FloatingPointError: they are not.
    """
    found = tuple(logprobs)
    if not all(map(math.isfinite, found)):
        raise not_finite()
    return found


def not_finite() -> FloatingPointError:
    """That a model overflows."""
    return FloatingPointError("the model's logits are not finite; another --dtype may help.")
