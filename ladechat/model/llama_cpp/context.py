"""A context of llama.cpp: the KV cache of one model, and passes over it."""

import ctypes
from ctypes import POINTER, c_int8, c_int32, c_void_p
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ladechat.model.llama_cpp.library import load_library
from ladechat.model.llama_cpp.model import PackedModel
from ladechat.model.llama_cpp.structures import Batch

TEXT, SPARE = 0, 1
"""The sequence ids of the text, and of cells that are on their way to it. From 1 on they are those of leaves, too."""

MOST_SEQUENCES = 64
"""The most sequences that see cells of their own in one pass. The library reserves memory for the logits of each."""

FLASH_ATTENTION = 1
F16, BF16 = 1, 30
"""The library's numbers of element types."""

SavedCells: TypeAlias = "ctypes.Array[ctypes.c_char]"
ID_BYTES = 4


class PassFailed(RuntimeError):
    """The library has refused a pass: the message has its code."""


class Context:
    """The KV cache and the passes of a model.

    A cell of the cache has a position, and the ids of the sequences that see it. The text's cells are the first ones,
    in the order of their positions: attention sums over the cells in order, so another order changes the last bits.

    On a CPU the values are cached in bfloat16, the keys in float16. With equal types llama.cpp splits the attention of
    a single token after 512 others among its threads, and computes that of 64 tokens and more in tiles; each sums in
    an order of its own, so that the logits of a token would depend on how many are in the pass (by up to 0.9).

    Args:
        model: its weights; they must outlive the context.
        cells: the number of tokens that the cache holds, those of a pass included.
        slots: the most tokens of one pass.
        threads: the number of threads that compute.

    Raises:
        MemoryError: the cache does not fit the memory.
    """

    def __init__(self, model: PackedModel, cells: int, slots: int, threads: int) -> None:
        self._library: Any = load_library()
        options = self._library.llama_context_default_params()
        options.n_ctx = cells
        options.n_batch = options.n_ubatch = slots
        options.n_seq_max = MOST_SEQUENCES
        options.n_outputs_max = options.n_outputs_max_per_seq = max(slots, MOST_SEQUENCES)
        options.n_threads = options.n_threads_batch = threads
        options.flash_attn_type = FLASH_ATTENTION
        options.type_k, options.type_v = F16, F16 if model.on_gpu else BF16
        options.swa_full = True  # dropping drafts must bring back what a sliding window would have lost
        options.kv_unified = True  # all sequences share the cells
        self._pointer = self._library.llama_init_from_model(model.pointer, options)
        if not self._pointer:
            raise MemoryError(f"llama.cpp has no memory for a cache of {cells:,} tokens.")
        self.cells, self.slots, self._vocabulary = cells, slots, model.vocabulary
        self._memory = self._library.llama_get_memory(self._pointer)
        self._tokens, self._positions, self._counts = (np.zeros(slots, np.int32) for _ in range(3))
        self._outputs = np.zeros(slots, np.int8)
        self._ids = np.zeros(slots, np.uint64)  # the address of each token's sequence ids
        self._batch = Batch(
            token=_address(self._tokens, c_int32),
            pos=_address(self._positions, c_int32),
            n_seq_id=_address(self._counts, c_int32),
            seq_id=_address(self._ids, c_void_p),
            logits=_address(self._outputs, c_int8),
        )

    def decode(
        self,
        tokens: NDArray[np.int32],
        positions: NDArray[np.int32],
        sequences: NDArray[np.bool_] | None = None,
        outputs: bool = True,
    ) -> NDArray[np.float32]:
        """Run one pass; return the (T, vocabulary) logits, a view that the next pass overwrites.

        Args:
            tokens: (T,) of at most `slots`.
            positions: (T,) in the text.
            sequences: (T, S), whether each token belongs to the sequences 0 … S - 1; None: all belong to the text.
            outputs: whether logits are wanted; else (0, vocabulary) is returned.

        Raises:
            PassFailed: the library refuses it.
        """
        count = len(tokens)
        if sequences is None:
            ids, counts = np.zeros(count, np.int32), np.ones(count, np.int32)
        else:
            ids, counts = sequences.nonzero()[1].astype(np.int32), sequences.sum(1, dtype=np.int32)
        self._tokens[:count], self._positions[:count], self._counts[:count] = tokens, positions, counts
        self._ids[:count] = ids.ctypes.data + ID_BYTES * (np.cumsum(counts) - counts)
        self._outputs[:count] = outputs
        self._batch.n_tokens = count
        code = self._library.llama_decode(self._pointer, self._batch)
        if code != 0:
            raise PassFailed(f"llama.cpp has refused a pass of {count} tokens (code {code}).")
        if not outputs:
            return np.empty((0, self._vocabulary), np.float32)
        return np.ctypeslib.as_array(self._library.llama_get_logits(self._pointer), (count, self._vocabulary))

    def truncate(self, length: int) -> bool:
        """Drop all cells but those of the text below position `length`.

        Returns False, with nothing dropped, where the model has a state that cannot be taken back.
        """
        if not self._library.llama_memory_seq_rm(self._memory, TEXT, length, -1):
            return False
        self._library.llama_memory_seq_keep(self._memory, TEXT)
        return True

    def clear(self) -> None:
        """Empty the cache."""
        self._library.llama_memory_clear(self._memory, False)

    def share_text(self, sequences: int) -> None:
        """Let the sequences 1 … `sequences` - 1 see the text."""
        for sequence in range(1, sequences):
            self._library.llama_memory_seq_cp(self._memory, TEXT, sequence, -1, -1)

    def copy(self, sequence: int, begin: int, end: int) -> SavedCells:
        """Return the cells of a sequence at the positions from `begin` up to `end`; all other sequences are dropped."""
        source = sequence
        if sequence == TEXT:
            self._library.llama_memory_seq_rm(self._memory, SPARE, -1, -1)
            self._library.llama_memory_seq_cp(self._memory, TEXT, SPARE, begin, end)
            source = SPARE
        else:
            self._library.llama_memory_seq_rm(self._memory, sequence, 0, begin)
            self._library.llama_memory_seq_rm(self._memory, sequence, end, -1)
        size = self._library.llama_state_seq_get_size(self._pointer, source)
        saved = ctypes.create_string_buffer(size)
        self._library.llama_state_seq_get_data(self._pointer, saved, size, source)
        self._library.llama_memory_seq_keep(self._memory, TEXT)
        return saved

    def append(self, saved: SavedCells) -> None:
        """Put copied cells after the text's.

        Raises:
            PassFailed: there is no room for them.
        """
        if not self._library.llama_state_seq_set_data(self._pointer, saved, len(saved), SPARE):
            raise PassFailed("llama.cpp has refused cells that it had saved.")
        self._library.llama_memory_seq_cp(self._memory, SPARE, TEXT, -1, -1)
        self._library.llama_memory_seq_keep(self._memory, TEXT)

    def text_bytes(self) -> int:
        """Return the bytes of the text's keys and values."""
        return int(self._library.llama_state_seq_get_size(self._pointer, TEXT))

    def close(self) -> None:
        """Free the cache."""
        if self._pointer:
            self._library.llama_free(self._pointer)
            self._pointer = None

    __del__ = close


def _address(values: NDArray[Any], kind: Any) -> Any:
    return values.ctypes.data_as(POINTER(kind))
