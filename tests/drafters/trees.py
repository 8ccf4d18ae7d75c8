"""What a proposal says, for tests."""

from collections.abc import Sequence

import torch

from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, Room

PLENTY = Room(tokens=1000, positions=1000)
VOCABULARY = 40


def ranked(*likeliest: int, vocabulary: int = VOCABULARY) -> torch.Tensor:
    """(vocabulary,) logits with these tokens on top, the likeliest first."""
    logits = torch.full((vocabulary,), -10.0)
    for rank, token in enumerate(likeliest):
        logits[token] = 10.0 - rank
    return logits


def paths(nodes: Sequence[Node]) -> list[tuple[int, ...]]:
    """The text that each node ends, from the first drafted token on. Checks that parents come first."""
    found: list[tuple[int, ...]] = []
    for index, node in enumerate(nodes):
        assert ROOT <= node.parent < index
        found.append((*(found[node.parent] if node.parent != ROOT else ()), node.token))
    return found


def branches(nodes: Sequence[Node]) -> list[tuple[int, ...]]:
    """The whole drafts, those that no other goes on with, in the order in which they begin."""
    parents = {node.parent for node in nodes}
    return [path for index, path in enumerate(paths(nodes)) if index not in parents]


def drafts(drafter: Drafter, text: Sequence[int], room: Room = PLENTY) -> list[tuple[int, ...]]:
    """What is proposed behind a text that is given as a new one."""
    drafter.begin(list(text), len(text))
    return branches(drafter.propose(room).nodes)
