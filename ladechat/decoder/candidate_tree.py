"""Guesses merged by shared prefix: the verification branch of a step."""

from collections.abc import Sequence

from ladechat.decoder.step import Source

ROOT = -1
"""The parent of a first token: the last accepted token, which is not a node itself."""


class CandidateTree:
    """A trie of draft tokens. A node comes after its parent; guesses that begin alike share nodes, so they share slots.

    Attributes:
        tokens, parents, sources, depths: one entry a node; the depth of a child of the root is 1.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.sources: list[Source] = []
        self.depths: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, tail: Sequence[int], source: Source) -> None:
        """Hang a guess under the root. Nodes that exist already keep the source that brought them."""
        node = ROOT
        for depth, token in enumerate(tail, start=1):
            child = self._children.get((node, token))
            if child is None:
                child = len(self.tokens)
                self._children[node, token] = child
                self.tokens.append(token)
                self.parents.append(node)
                self.sources.append(source)
                self.depths.append(depth)
            node = child

    def child(self, node: int, token: int) -> int | None:
        """The node that continues `node` (or `ROOT`) with `token`, if a guess does."""
        return self._children.get((node, token))
