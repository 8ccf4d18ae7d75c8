"""A model of what several GPUs would bring by lookahead parallelism, from passes that were timed on one."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ladechat.decoder.drafters.drafter import Proposal
from ladechat.decoder.drafters.window import as_nodes
from ladechat.decoder.policy import add_whole
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.parallel.cut import largest_pass

if TYPE_CHECKING:
    from ladechat.bench.figures import Figures
    from ladechat.tuning.costs import PassCosts

GPUS = (2, 4, 8)
EXCHANGE_SECONDS = 0.0003
"""What orders and the gather of a step take between processes of one machine, roughly: measured on two CPU cores."""


def tree_of(window: int, ngram: int, guesses: int) -> SlotTree:
    """Return a pass of lookahead decoding with a full window and `guesses` guesses that share no slot."""
    rows = [range(row * window, (row + 1) * window) for row in range(ngram - 1)]
    tree, token = SlotTree(0), window * (ngram - 1)
    add_whole(tree, Proposal(as_nodes(rows)))
    for _ in range(guesses):
        slot = 0
        for _ in range(ngram - 1):
            slot, token = tree.add(slot, token), token + 1
    return tree


def modelled(measured: "Figures", settings: Sequence[int], costs: "PassCosts", gpus: int) -> float:
    """Return the tokens a second on several GPUs if each pass takes the time of its largest part, and all else as long
    as on one GPU.

    Args:
        measured: the figures on one GPU; with tokens a second.
        settings: W, N and G.
        costs: the costs of passes on one GPU.
        gpus: the number of GPUs.
    """
    assert measured.tokens_per_second is not None
    tree, slots = tree_of(*settings), measured.slots / measured.passes
    part = slots * largest_pass(tuple(tree.parents), gpus) / len(tree)
    whole_seconds, part_seconds = (float(costs.curve(math.ceil(size))[-1]) for size in (slots, part))
    step = measured.tokens_per_step / measured.tokens_per_second
    return measured.tokens_per_step / (step - whole_seconds + part_seconds + EXCHANGE_SECONDS)


def show_model(methods: Mapping[str, "Figures"], costs: "PassCosts", console: Console) -> None:
    """Print the modelled speed of lookahead decoding on several GPUs, for each setting that was measured on one, by its
    name, as in "lookahead 5,3,5"; others are left out.
    """
    table = Table("W, N, G", "measured: 1 GPU", *(f"{gpus} GPUs" for gpus in GPUS), title_justify="left")
    table.title = "tok/s with --lookahead-parallel: modelled from the costs above, not measured"
    for column in table.columns[1:]:
        column.justify = "right"
    for name, one in methods.items():
        settings = [int(number) for number in name.partition(" ")[2].split(",") if number]
        if settings and one.tokens_per_second is not None:
            speeds = (one.tokens_per_second, *(modelled(one, settings, costs, gpus) for gpus in GPUS))
            table.add_row(", ".join(map(str, settings)), *(f"{speed:.1f}" for speed in speeds))
    console.print(table)
