"""The kernels' library: loaded, checked, and its functions called with tensors."""

import ctypes
import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ladechat.model.kernels.build import LOADING, Build, BuildError

COLUMNS = 32
"""The columns in a block of packed weights, as in `csrc/registers.h`."""

TYPES = {torch.float16: "linear_float16", torch.bfloat16: "linear_bfloat16", torch.float32: "linear_float32"}
"""The functions of linear layers, by the type of the packed weights."""

HELD_AT_ONCE = 1 << 16
"""The weights compared with their 16-bit copies at a time."""

MOST_SLOTS = 64
"""Attention of more slots is left to torch."""

CRASHES = 2
"""The consecutive crashes after which a library is not loaded any more: one may be a power cut, or a kill."""


def pack(weight: Tensor) -> Tensor:
    """Return (columns, inner) weights in blocks, (blocks, inner, COLUMNS), the last one padded with zeros.

    They are in 16 bits where these hold every number exactly, as for a checkpoint saved in 16 bits: half the memory to
    read, and the same sums.
    """
    columns, inner = weight.shape
    short = next((short for short in (torch.bfloat16, torch.float16) if _holds(short, weight)), weight.dtype)
    packed = weight.new_empty(-(-columns // COLUMNS), inner, COLUMNS, dtype=short)
    whole = columns // COLUMNS
    packed[:whole] = weight[: whole * COLUMNS].reshape(whole, COLUMNS, inner).transpose(1, 2)
    if columns % COLUMNS:
        packed[whole].zero_()[:, : columns % COLUMNS] = weight[whole * COLUMNS :].t()
    return packed


def unpack(packed: Tensor, columns: int) -> Tensor:
    """Return the (columns, inner) float32 weights that were packed."""
    return packed.transpose(1, 2).reshape(-1, packed.shape[1])[:columns].float()


def _holds(short: torch.dtype, weight: Tensor) -> bool:
    """Return whether a type holds all weights exactly. Compares some rows at a time, to stay in the CPU's cache."""
    parts = torch.split(weight, max(1, HELD_AT_ONCE // weight.shape[1]))
    return all(torch.equal(rows.to(short).to(rows.dtype), rows) for rows in parts)


class Library:
    """The compiled kernels in a file (see `ladechat.model.kernels.build`); at most `threads` threads share a call.

    Raises:
        OSError: the file is not a library for this machine.
    """

    def __init__(self, path: Path, threads: int) -> None:
        functions = ctypes.CDLL(str(path))
        self.threads = threads
        self._linear = {dtype: getattr(functions, name) for dtype, name in TYPES.items()}
        pointer, number, count = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
        for function in self._linear.values():
            function.argtypes, function.restype = [*[pointer] * 3, *[number] * 3, count], None
        self._norm: Any = functions.rms_norm
        self._norm.argtypes, self._norm.restype = [*[pointer] * 3, number, number, ctypes.c_float], None
        self._attention: Any = functions.attention
        self._attention.argtypes, self._attention.restype = [*[pointer] * 6, ctypes.c_float, count], None
        self._sizes = ctypes.c_int64 * 13

    def product(self, packed: Tensor, columns: int) -> Callable[[Tensor], Tensor]:
        """Return a function that multiplies x (…, inner) float32 with packed weights, to (…, columns) float32.

        It raises a RuntimeError for an x of another type or shape. A pass calls hundreds of them, some for microseconds
        only, so facts about the weights are looked up once.
        """
        blocks, inner, _ = packed.shape
        if blocks * COLUMNS < columns:
            raise RuntimeError(f"There are {blocks * COLUMNS} packed columns, and not {columns}.")
        function, empty, float32 = self._linear[packed.dtype], torch.empty, torch.float32

        def product(x: Tensor) -> Tensor:
            *shape, width = x.shape
            if width != inner or x.dtype is not float32:
                raise RuntimeError(f"A packed linear layer of {inner} inputs does not take {x.dtype} {tuple(x.shape)}.")
            x = x.contiguous()
            y = empty(*shape, columns)
            function(x.data_ptr(), packed.data_ptr(), y.data_ptr(), x.numel() // inner, inner, columns, self.threads)
            return y

        return product

    def norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """Return x (…, width) float32, divided by the root mean square of each row, times weight (width,) float32."""
        width = x.shape[-1]
        if x.dtype is not torch.float32 or weight.shape != (width,):
            raise RuntimeError(f"A norm of {tuple(weight.shape)} weights does not take {x.dtype} {tuple(x.shape)}.")
        x = x.contiguous()
        y = torch.empty_like(x)
        self._norm(x.data_ptr(), weight.data_ptr(), y.data_ptr(), x.numel() // width, width, epsilon)
        return y

    def takes(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
        """Return whether `attention` supports these: one float32 sequence, few slots, one bool mask for all heads."""
        return (
            mask is not None
            and mask.dtype is torch.bool
            and len(query) == 1
            and query.shape[2] <= MOST_SLOTS
            and all(part.dtype is torch.float32 and part.stride(3) == 1 for part in (query, key, value))
            and mask.shape == (1, 1, query.shape[2], key.shape[2])
            and mask.stride(3) == 1
            and key.shape[:3] == value.shape[:3]
            and key.shape[3] == query.shape[3]
            and query.shape[1] % key.shape[1] == 0
        )

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
        """Return the attention, (1, T, heads, value_dim) float32, of tensors that it `takes`.

        Args:
            query: (1, heads, T, key_dim) float32.
            key: (1, key_value_heads, L + T, key_dim) float32.
            value: (1, key_value_heads, L + T, value_dim) float32.
            mask: (1, 1, T, L + T) bool.
            scale: factor of the scores.
        """
        _, heads, slots, key_dim = query.shape
        _, key_value_heads, tokens, value_dim = value.shape
        out = torch.empty(1, slots, heads, value_dim)
        strides = (*query.stride()[1:3], *key.stride()[1:3], *value.stride()[1:3], mask.stride(2))
        self._attention(
            query.data_ptr(), key.data_ptr(), value.data_ptr(), mask.data_ptr(), out.data_ptr(),
            self._sizes(heads, key_value_heads, slots, tokens, key_dim, value_dim, *strides), scale, self.threads,
        )  # fmt: skip
        return out

    def is_right(self) -> bool:
        """Return whether the kernels compute the same as torch on this machine: a compiler may be faulty."""
        dice = torch.Generator().manual_seed(0)
        x, weight = torch.randn(5, 48, generator=dice), torch.randn(70, 48, generator=dice).bfloat16().float()
        found = [self.product(pack(weight).to(dtype), 70)(x) for dtype in (torch.float32, torch.bfloat16)]
        half = weight.half().float()
        found += [self.product(pack(half).half(), 70)(x), self.norm(x, weight[0], 0.1)]
        expected = [x @ weight.T, x @ weight.T, x @ half.T, torch.rms_norm(x, (48,), weight[0], 0.1)]
        query, key, value = (torch.randn(1, 2, tokens, 48, generator=dice) for tokens in (5, 30, 30))
        mask = torch.ones(1, 1, 5, 30, dtype=torch.bool).tril(25)
        found.append(self.attention(query, key, value, mask, 0.5))
        attended = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.5)
        expected.append(attended.transpose(1, 2))
        return all(torch.allclose(*pair, atol=1e-4, rtol=1e-4) for pair in zip(found, expected, strict=True))


class NotOurs(BuildError):
    """A file is not a library for this machine, or lacks our functions."""


def load_library(build: Build, threads: int) -> Library:
    """Return the kernels, after checking them against torch. An unusable file is built again, once.

    Raises:
        BuildError: it cannot be built, is no library, computes something else, or crashes; its folder cannot be written
            to, or files in it cannot be locked.
    """
    try:
        with suppress(NotOurs):
            return _loaded(build.library(), threads)
        return _loaded(build.rebuilt(), threads)
    except OSError as error:
        raise BuildError(f"The kernels cannot be loaded: {error}.") from error


def _loaded(path: Path, threads: int) -> Library:
    with crash_remembered(path):
        try:
            library = Library(path, threads)
        except (OSError, AttributeError) as error:  # AttributeError: a function is missing in it
            raise NotOurs(f"The C++ compiler has built another library than ours: {error}.") from error
        if not library.is_right():
            raise BuildError("The C++ compiler has built kernels that compute something else.")
    return library


@contextmanager
def crash_remembered(path: Path) -> Iterator[None]:
    """Add a line to a file while a library is being loaded, and clear it afterwards: a crash leaves the line.

    The file is locked meanwhile, so the lines in an unlocked one are of processes that have ended.

    Raises:
        BuildError: the last `CRASHES` processes crashed while they loaded the library.
        OSError: the file cannot be written.
    """
    with path.with_suffix(LOADING).open("a+", encoding="utf-8") as note:
        fcntl.flock(note, fcntl.LOCK_EX)  # another process that is loading it needs milliseconds
        note.seek(0)
        if len(note.readlines()) >= CRASHES:
            raise BuildError(
                f"They have twice ended a program while they were loaded; to try again, remove {note.name}."
            )
        note.write("being loaded\n")
        note.flush()
        try:
            yield
        finally:
            note.truncate(0)
