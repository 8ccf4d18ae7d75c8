"""The cached text of a conversation, set aside while other texts overwrite it, and restored after them."""

from collections.abc import Sequence

import torch

from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.out_of_memory import memory_is_used_up


class Aside:
    """The content of a cache, copied as far as another text has overwritten it.

    The common prefix of both texts stays in place and is not copied: for another question in a conversation that is
    the whole of it, and where the last question is asked again, only the last answer is copied.

    Args:
        tokens: the cached text.

    Attributes:
        tokens: the tokens that can be restored; fewer than all where the memory did not suffice for a copy.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self._in_place = len(self.tokens)
        self._copies: list[tuple[int, list[torch.Tensor]]] = []

    def copy(self, cache: SlabCache, start: int) -> None:
        """Copy what is still in place from token `start` on, before it is overwritten."""
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
        """Restore the text in the cache that it came from, replacing the present content."""
        for start, rows in self._copies:
            cache.paste(start, rows)
        cache.length = len(self.tokens)
