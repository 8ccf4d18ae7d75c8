"""The runner of a GGUF file whose weights stay packed: llama.cpp computes the passes."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.largest import largest
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.library import Library, load_library
from ladechat.model.llama_cpp.context import MOST_SEQUENCES, TEXT, Context, SavedCells
from ladechat.model.llama_cpp.model import PackedModel
from ladechat.model.runners.logits import argmax

LOGITS_ONLY = "llama.cpp gives no hidden states of single layers."
HAS_STATE = "llama.cpp takes one token per pass of this model: it has a recurrent state, which cannot be taken back."

FIRST_CELLS = 1024
"""The cells of a new cache. It grows by doubling, as memory for all positions of a long context would be wasted."""


class _Round(NamedTuple):
    """The slots of a pass that see each other's cells: those on the way to at most `MOST_SEQUENCES` leaves.

    Attributes:
        slots: (R,) the slots of the tree in the order of their cells.
        sequences: (R, S) the sequences that see each; sequence s leads to leaf s.
        in_text: the number of cells from the first one on that are a path of the text's own sequence.
    """

    slots: NDArray[np.int64]
    sequences: NDArray[np.bool_]
    in_text: int


class _Pending(NamedTuple):
    """The last pass: its tokens, and the round whose cells are in the cache."""

    tokens: list[int]
    last: _Round


class _Aside(NamedTuple):
    """A text whose cells from `begin` on were copied, in several pieces."""

    tokens: list[int]
    begin: int
    pieces: list[SavedCells]


class PackedRunner:
    """The `ModelRunner` of a GGUF file.

    A tree of slots is passed on as sequences: each leaf has one, and a slot belongs to those of all leaves below it, so
    that it sees its ancestors and is seen by its descendants. For the tree ``the → cat → sat``, ``the → dog`` after
    three cached tokens, with leaf 0 being ``sat``:

        slot       the   cat   sat   dog
        position    3     4     5     4
        sequences  0, 1   0     0     1

    Cells of an accepted path that are not the first ones of the pass are copied there when it is committed.

    Args:
        model: the file.
        context_length: the number of positions it may use.
        threads: the number of threads that compute.
        slots: the most slots of one call of the library; a larger pass takes several.
        kernels: those that look for the largest logits; None leaves it to torch, which takes up to ten times as long
            right after a pass. Those that have to be built first are used from the first prompt after that.

    Attributes:
        loop: None; passes give logits alone.
        device: the CPU, where logits arrive.
    """

    loop = None
    device = torch.device("cpu")

    def __init__(
        self, model: PackedModel, context_length: int, threads: int, slots: int, kernels: Build | None = None
    ) -> None:
        self._kernels = kernels
        self._library: Library | None = None
        self._model, self._threads, self._slots = model, threads, slots
        self.context_length = context_length
        reason = HAS_STATE if model.has_state else None
        self.capabilities = Capabilities(single_token=reason, logits_only=LOGITS_ONLY)
        self._context: Context | None = None
        self._tokens: list[int] = []
        self._pending: _Pending | None = None
        self._aside: _Aside | None = None

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def max_positions(self) -> int:
        return 1 if self._model.has_state else max(1, self.context_length - len(self._tokens))

    @property
    def cache(self) -> "PackedRunner":
        """See `ModelRunner.cache`."""
        return self

    @property
    def nbytes(self) -> int:
        """The bytes of the KV cache, by those of the tokens in it."""
        if self._context is None or not self._tokens:
            return 0
        return self._context.text_bytes() * self._context.cells // len(self._tokens)

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        if not 0 < len(tokens) <= self.context_length:
            raise ValueError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_length}.")
        wanted = list(tokens[:-1])
        shared = common_prefix(self._tokens, wanted)
        self._take_kernels(worth_a_build=shared > len(self._tokens) / 2)
        self._truncate(shared)
        self._reserve(len(wanted) - len(self._tokens))
        while len(self._tokens) < len(wanted):
            self._read(wanted[len(self._tokens) :][: self._slots])
            yield len(self._tokens)

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """See `ModelRunner.cached_prefix`."""
        return common_prefix(self._tokens, tokens)

    def prepare(self) -> None:
        """See `Runner.prepare`; nothing to do."""

    def forward(self, tree: SlotTree) -> torch.Tensor:
        if len(tree) > 1 and not self.capabilities.tree_attention:
            raise ValueError(self.capabilities.single_token)
        cached = len(self._tokens)
        last = cached + int(tree.positions.max())
        if last >= self.context_length:
            raise ValueError(f"Position {last} is beyond a context of {self.context_length} tokens.")
        context = self._reserve(len(tree))
        tokens = np.array(tree.tokens, np.int32)
        positions = (tree.positions + cached).astype(np.int32)
        rounds = _rounds(tree)
        if len(rounds) == 1 and len(tree) <= self._slots:
            self._drop_pending()
            return torch.from_numpy(next(self._pass(context, tree, rounds[0], tokens, positions))[1])
        logits = np.empty((len(tree), self._model.vocabulary), np.float32)
        for one in reversed(rounds):  # the first one has the likeliest path: its cells stay for the commit
            self._drop_pending()
            for slots, found in self._pass(context, tree, one, tokens, positions):
                logits[slots] = found
        return torch.from_numpy(logits)

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        raise ValueError(self.capabilities.logits_only)

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        return self._library.best(logits) if self._library else argmax(logits)

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        return self._library.largest(logits, count) if self._library else largest(logits, count)

    def commit(self, slots: Sequence[int]) -> None:
        if self._pending is None or self._context is None:
            raise RuntimeError("There is no pass whose slots could be committed.")
        (tokens, last), cached = self._pending, len(self._tokens)
        self._pending = None
        path, accepted = list(slots), [tokens[slot] for slot in slots]
        in_place = common_prefix(path, last.slots[: last.in_text].tolist())
        if in_place == len(path):
            if len(last.slots) > in_place:
                self._context.truncate(cached + in_place)
            self._tokens += accepted
        elif path[-1] in last.slots:
            self._move(last, path[-1], cached + in_place, cached + len(path))
            self._tokens += accepted
        else:
            self._context.truncate(cached)
            for start in range(0, len(accepted), self._slots):
                self._read(accepted[start : start + self._slots])

    def set_aside(self, tokens: Sequence[int]) -> None:
        """See `ModelRunner.set_aside`. Does nothing for a model with a recurrent state, whose text is read anew."""
        if self._context is None or self._model.has_state:
            return
        self._drop_pending()
        begin = min(self.cached_prefix(tokens), len(tokens) - 1)
        before = self._aside or _Aside(list(self._tokens), len(self._tokens), [])
        if begin < before.begin:
            piece = self._context.copy(TEXT, begin, before.begin)
            before = _Aside(before.tokens, begin, [piece, *before.pieces])
        self._aside = before

    def take_back(self) -> None:
        if self._aside is None:
            return
        tokens, begin, pieces = self._aside
        self._aside = None
        if common_prefix(self._tokens, tokens) < begin:  # a prompt was read that was not announced
            return
        self._truncate(begin)
        context = self._reserve(len(tokens) - begin)
        for piece in pieces:
            context.append(piece)
        self._tokens = tokens

    def save_memory(self) -> None:
        """See `ModelRunner.save_memory`."""
        if self._context is not None:
            self._context.close()
        self._context = self._pending = self._aside = None
        self._tokens = []

    def use_graphs(self) -> None:
        """See `ModelRunner.use_graphs`; llama.cpp records what can be recorded."""

    def _take_kernels(self, worth_a_build: bool) -> None:
        """Use the kernels if they are built by now. Their build, of seconds, starts where a conversation goes on."""
        if self._kernels is not None and worth_a_build:
            self._kernels.start()
        if self._kernels is not None and self._kernels.finished:
            with suppress(BuildError):  # torch does it, too
                self._library = load_library(self._kernels, self._threads)
            self._kernels = None

    def _pass(
        self,
        context: Context,
        tree: SlotTree,
        one: _Round,
        tokens: NDArray[np.int32],
        positions: NDArray[np.int32],
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Run the slots of one round, in calls of as many as are exact; yield the slots of each, and their logits."""
        self._pending = _Pending(list(tree.tokens), one)
        sequences = one.sequences.shape[1]
        context.share_text(sequences)
        parts = [one.slots[start : start + self._slots] for start in range(0, len(one.slots), self._slots)]
        for number, part in enumerate(parts):
            seen_by = one.sequences[number * self._slots :][: len(part)] if sequences > 1 else None
            yield part, context.decode(tokens[part], positions[part], seen_by)

    def _move(self, last: _Round, slot: int, begin: int, end: int) -> None:
        """Copy the cells of the path to a slot, at these positions, to where the text goes on."""
        assert self._context is not None
        sequence = int(last.sequences[last.slots.tolist().index(slot)].argmax())
        saved = self._context.copy(sequence, begin, end)
        self._context.truncate(begin)
        self._context.append(saved)

    def _read(self, tokens: Sequence[int]) -> None:
        """Append tokens to the cache, at most `slots`."""
        context, cached = self._reserve(len(tokens)), len(self._tokens)
        positions = np.arange(cached, cached + len(tokens), dtype=np.int32)
        context.decode(np.array(tokens, np.int32), positions, outputs=False)
        self._tokens += tokens

    def _drop_pending(self) -> None:
        """Drop the slots of a pass that was not committed."""
        if self._pending is not None:
            self._pending = None
            self._truncate_cells(len(self._tokens))

    def _truncate(self, length: int) -> None:
        """Drop the cached tokens from this number on."""
        self._drop_pending()
        if length < len(self._tokens):
            self._truncate_cells(length)

    def _truncate_cells(self, length: int) -> None:
        if self._context is None or self._context.truncate(length):
            del self._tokens[length:]
            return
        again = self._tokens[:length]
        self._context.clear()
        self._tokens = []
        while len(self._tokens) < len(again):
            self._read(again[len(self._tokens) :][: self._slots])

    def _reserve(self, tokens: int) -> Context:
        """Return the context, with room for so many tokens after the cached ones."""
        needed = len(self._tokens) + tokens
        if self._context is None:
            cells = max(FIRST_CELLS, needed)
            self._context, self._tokens = Context(self._model, cells, self._slots, self._threads), []
        elif needed > self._context.cells:
            self._drop_pending()
            cached, cells = list(self._tokens), max(needed, 2 * self._context.cells)
            saved = self._context.copy(TEXT, 0, len(cached)) if cached else None
            self._context.close()
            self._context, self._tokens = None, []  # in case memory is used up
            self._context = Context(self._model, cells, self._slots, self._threads)
            if saved is not None:
                self._context.append(saved)
            self._tokens = cached
        return self._context


def _rounds(tree: SlotTree) -> list[_Round]:
    """Return the slots of a tree in rounds of so many leaves that each can have a sequence of its own.

    The first leaf is below the path with which the tree begins, so that this path's cells are the text's own.
    """
    parents, mask = tree.parents, tree.mask
    chain = next((slot for slot in range(1, len(tree)) if parents[slot] != slot - 1), len(tree))
    inner = set(parents)
    leaves = [slot for slot in range(len(tree)) if slot not in inner]
    leaves.sort(key=lambda leaf: not mask[leaf, chain - 1])  # stable
    rounds = []
    for start in range(0, len(leaves), MOST_SEQUENCES):
        seen = mask[leaves[start : start + MOST_SEQUENCES]]
        slots = np.flatnonzero(seen.any(0))
        in_text = chain if not start else 1
        rounds.append(_Round(slots, np.ascontiguousarray(seen[:, slots].T), in_text))
    return rounds
