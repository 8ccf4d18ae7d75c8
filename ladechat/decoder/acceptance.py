"""Which drafted tokens the model confirms: Fu et al. 2024 (arXiv 2402.02057), section 3.2, over a tree of guesses."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch

from ladechat.decoder.candidate_tree import ROOT, CandidateTree


class Acceptance(NamedTuple):
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
    # Row by row: for the one to five tokens of a step that is a third of what a gather of them takes.
    found = tuple(float(logits[row].float().log_softmax(-1)[token]) for row, token in zip(rows, tokens, strict=True))
    if any(map(math.isnan, found)):  # what is not finite anywhere in a row spoils its whole sum
        raise not_finite()
    return found


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
