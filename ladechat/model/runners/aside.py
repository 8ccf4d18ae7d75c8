"""The cached text of a conversation, while other texts are read into its place, and brought back after them."""

from collections.abc import Sequence

import torch

from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.out_of_memory import memory_is_used_up


class Aside:
    """What a cache held, as far as another text has overwritten it.

    The beginning that both texts share stays where it is, and is not copied: of a conversation that is asked another
    question that is all, and of one whose last question is asked again, its last answer is copied.

    Args:
        tokens: all of the cached text.

    Attributes:
        tokens: those that can be brought back; fewer than all where the memory did not suffice for a copy.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self._in_place = len(self.tokens)
        self._copies: list[tuple[int, list[torch.Tensor]]] = []

    def copy(self, cache: SlabCache, start: int) -> None:
        """Copy what is still in its place from token `start` on, before it is overwritten."""
        if start >= self._in_place:
            return
        try:
            self._copies.append((start, cache.copied(start, self._in_place)))
        except (RuntimeError, MemoryError) as error:
            if not memory_is_used_up(error):
                raise
            self._copies.clear()
            del self.tokens[start:]
        self._in_place = start

    def bring_back(self, cache: SlabCache) -> None:
        """Put all of it into the cache that it came from, in the place of what is there."""
        for start, rows in self._copies:
            cache.paste(start, rows)
        cache.length = len(self.tokens)
