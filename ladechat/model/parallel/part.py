"""Lookahead parallelism (Fu et al. 2024, arXiv 2402.02057, section 3.4): each process holds the whole model, and
computes its part of the slots of each pass.

Nothing is exchanged during a pass. After it each process tells rank 0 the argmax of its slots, and rank 0 tells all
which slots were accepted. The keys of an accepted slot are only where it was computed; the other processes put its
token before slot 0 of their next pass.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed
from torch.utils._pytree import tree_map_only

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.parallel.cut import Part, cut
from ladechat.model.parallel.sharing import SharingRunner
from ladechat.model.runners.cache_probe import UnsupportedModel
from ladechat.model.runners.logits import argmax_with_log_probabilities
from ladechat.model.runners.model_runner import ModelRunner
from ladechat.model.runners.tree import TreeRunner


class DistributedLogits(torch.Tensor):
    """The (T, vocabulary) logits of a pass, whose rows are in several processes.

    Reading a row fetches it, any other use fetches all. What a greedy step needs was gathered with the pass.

    Args:
        rows: T.
        like: the logits of this process.
        gathered: (2 + count, T) float64: the argmax of each slot, its log-probability, and the tokens with the `count`
            largest logits.

    Attributes:
        fetch: returns the (n, vocabulary) logits of n slots; assigned by rank 0.
    """

    fetch: Callable[[Sequence[int]], torch.Tensor]

    @staticmethod
    def __new__(cls, rows: int, like: torch.Tensor, gathered: NDArray[np.float64]) -> "DistributedLogits":
        shape = (rows, like.shape[-1])
        made: DistributedLogits = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=like.dtype, device=like.device)
        return made

    def __init__(self, rows: int, like: torch.Tensor, gathered: NDArray[np.float64]) -> None:
        super().__init__()
        self.gathered = gathered
        self._rows: dict[int, torch.Tensor] = {}

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Return the logits of a slot, or of several: a list of them or a slice."""
        several = range(len(self))[index] if isinstance(index, slice) else index
        slots = [index] if isinstance(index, int) else list(several)
        missing = [slot for slot in slots if slot not in self._rows]
        if missing:
            self._rows.update(zip(missing, self.fetch(missing), strict=True))
        return self._rows[index] if isinstance(index, int) else torch.stack([self._rows[slot] for slot in slots])

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch declares it as a function
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args, options = tree_map_only(cls, lambda logits: logits[:], (args, kwargs or {}))
        return func(*args, **options)


class _Pass(NamedTuple):
    """The last pass: the tree's tokens, its parts, and of this process the logits, and each slot's place in them."""

    tokens: Sequence[int]
    parts: Sequence[Part]
    logits: torch.Tensor
    places: dict[int, int]


class PartRunner(SharingRunner):
    """Does one process's part of each pass. All processes call the same methods with the same arguments.

    Args:
        runner: the runner of the whole model in this process.
        rank: the number of this process.
        processes: the number of processes.

    Raises:
        UnsupportedModel: the model's passes cannot be divided.
    """

    def __init__(self, runner: ModelRunner, rank: int, processes: int) -> None:
        super().__init__(runner)
        if runner.capabilities.single_token is not None:
            raise UnsupportedModel(f"Its passes cannot be shared: {runner.capabilities.single_token}")
        if not (isinstance(runner, TreeRunner) and runner.has_fixed_angles):
            raise UnsupportedModel("Its passes cannot be shared: rotary angles depend on the length of the text.")
        self.capabilities = replace(self.capabilities, processes=processes)
        self._rank = rank
        self._tokens: list[int] = []
        self._missing = [0] * processes
        """How many of the last tokens are missing in the cache of each process."""
        self._last = _Pass((), (), torch.empty(0), {})
        self._pending = False
        """Whether the last pass waits for `commit`."""

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def max_positions(self) -> int:
        return max(1, self._runner.max_positions - self._missing[self._rank])

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        return common_prefix(self._tokens, tokens)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`. First come accepted tokens whose keys and values only another process has: from caches
        of different lengths, processes would read the rest in different chunks.
        """
        common = min(self.cached_prefix(tokens), len(tokens) - 1)
        for _ in self._runner.prefill(tokens[: common + 1]):
            pass
        self._missing, self._pending = [0] * len(self._missing), False
        del self._tokens[common:]
        for done in self._runner.prefill(tokens):
            self._tokens += tokens[len(self._tokens) : done]
            yield done

    def prepare(self) -> None:
        self._runner.prepare()

    def use_graphs(self) -> None:
        self._runner.use_graphs()

    def forward(self, tree: SlotTree, count: int = 0) -> DistributedLogits:
        """See `Runner.forward`; only rank 0 gets what is gathered: `argmax`, and the `count` largest logits."""
        parts = cut(tuple(tree.parents), tuple(self._missing))
        missing = self._tokens[len(self._tokens) - self._missing[self._rank] :]
        part, places = SlotTree.chain([*missing, tree.tokens[0]]), {0: len(missing)}
        for slot in parts[self._rank].slots[1:]:
            places[slot] = part.add(places[tree.parents[slot]], tree.tokens[slot])
        logits = self._runner.forward(part)
        self._last, self._pending = _Pass(list(tree.tokens), parts, logits, places), True
        tokens, logprobs = self._runner.argmax(logits)
        if logprobs is None:
            logprobs = argmax_with_log_probabilities(logits)[1]
        found = [np.array([tokens, logprobs])]
        if count:
            found.append(self._runner.largest(logits, count).T.astype(np.float64))
        return DistributedLogits(len(tree), logits, self._gathered(np.concatenate(found)))

    def gather_largest(self, count: int) -> NDArray[np.int64]:
        """Return `Runner.largest` of the last pass; only in rank 0."""
        largest = self._runner.largest(self._last.logits, count)
        return self._gathered(largest.T.astype(np.float64)).T.astype(np.int64)

    def rows(self, slots: Sequence[int]) -> torch.Tensor:
        """Return the (n, vocabulary) logits of n slots of the last pass; only in rank 0."""
        last = self._last
        found: dict[int, torch.Tensor] = {}
        for rank, part in enumerate(last.parts):
            wanted = [slot for slot in part.own if slot in slots]
            if not wanted or self._rank not in (0, rank):
                continue
            if rank == self._rank:
                rows = last.logits[[last.places[slot] for slot in wanted]]
            else:
                rows = torch.empty(len(wanted), last.logits.shape[-1], dtype=last.logits.dtype)
                distributed.recv(rows.view(torch.uint8), rank)
            if self._rank:
                distributed.send(rows.cpu().view(torch.uint8), 0)
            found |= zip(wanted, rows.to(self.device), strict=True)
        return last.logits[:0] if self._rank else torch.stack([found[slot] for slot in slots])

    def is_here(self, slots: Sequence[int]) -> bool:
        """Return whether the logits of these slots are all in this process."""
        return set(slots) <= set(self._last.parts[self._rank].own)

    def commit(self, slots: Sequence[int]) -> None:
        """See `Runner.commit`. Each process commits the tokens that it missed, and those slots that it has."""
        if not self._pending:
            raise RuntimeError("There is no pass whose slots could be committed.")
        last, missing, self._pending = self._last, self._missing[self._rank], False
        for rank, part in enumerate(last.parts):
            held = [slot for slot in slots if slot in part.slots]  # the path's first: a part has all ancestors
            if rank == self._rank:
                self._runner.commit([*range(missing), *(last.places[slot] for slot in held)])
            self._missing[rank] = len(slots) - len(held)
        self._tokens += [last.tokens[slot] for slot in slots]

    def save_memory(self) -> None:
        """See `ModelRunner.save_memory`."""
        self._runner.save_memory()
        self._tokens, self._missing, self._pending = [], [0] * len(self._missing), False

    def _gathered(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n, T) values of all slots, of which this process has those in its pass; only in rank 0.

        By way of the CPU, which reads them anyway.
        """
        parts = self._last.parts
        own, width = parts[self._rank].own, max(len(part.own) for part in parts)
        mine = torch.zeros(len(values), width, dtype=torch.float64)
        mine[:, : len(own)] = torch.from_numpy(values[:, [self._last.places[slot] for slot in own]])
        everyone = None if self._rank else [torch.empty_like(mine) for _ in parts]
        distributed.gather(mine, everyone)
        found = np.zeros((len(values), len(self._last.tokens)))
        for part, theirs in zip(parts, everyone or (), strict=False):
            found[:, part.own] = theirs.numpy()[:, : len(part.own)]
        return found
