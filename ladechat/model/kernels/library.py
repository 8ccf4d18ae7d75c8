"""The kernels' library: loaded, checked, and its functions called with tensors."""

import ctypes
import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ladechat.model.kernels.build import LOADING, Build, BuildError
from ladechat.model.kernels.large_pages import LargePages
from ladechat.model.kernels.packing import FLOATS, GROUPED, INTEGERS, Packed, pack, room_for_integers
from ladechat.model.kernels.soft_cap import capped_attention
from ladechat.model.kernels.structures import NUMBER, POINTER, Attention, Best, Layer, LayerPass, Matrix, Model, Rows

MOST_SLOTS = 64
"""Attention of more slots is left to torch."""

CRASHES = 2
"""The consecutive crashes after which a library is not loaded any more: one may be a power cut, or a kill."""


class Library:
    """The compiled kernels in a file (see `ladechat.model.kernels.build`); at most `threads` threads share a call.

    Attributes:
        tiles: whether weights in bfloat16 are multiplied in tiles, by AMX, and have to be packed for them.
        instructions: the name of the processor's instructions by which all else is computed.

    Raises:
        OSError: the file is not a library for this machine.
    """

    def __init__(self, path: Path, threads: int) -> None:
        functions = ctypes.CDLL(str(path))
        self.threads = threads
        count, real = ctypes.c_int, ctypes.c_float
        arguments: dict[str, list[Any]] = {
            "linear": [POINTER, POINTER, POINTER, NUMBER, count],
            "columns": [POINTER, POINTER, NUMBER, POINTER],
            "pack": [POINTER, POINTER, NUMBER, NUMBER, count],
            "best": [POINTER, NUMBER, NUMBER, POINTER, count],
            "largest": [POINTER, NUMBER, NUMBER, NUMBER, POINTER, count],
            "norm": [POINTER, POINTER, POINTER, NUMBER, NUMBER, real],
            "attention": [POINTER, count],
            "layer": [POINTER, POINTER, POINTER, count],
            "pass": [POINTER, POINTER, POINTER, POINTER, NUMBER, POINTER, count],
        }
        self._functions: dict[str, Any] = {name: getattr(functions, name) for name in arguments}
        for name, function in self._functions.items():
            function.argtypes, function.restype = arguments[name], None
        functions.has_tiles.restype, functions.instructions.restype = ctypes.c_bool, ctypes.c_char_p
        self.tiles: bool = functions.has_tiles()
        self.instructions: str = functions.instructions().decode()

    def rounded(self, weight: Tensor, kind: str, room: LargePages | None = None) -> Packed:
        """Return (columns, inner) float32 weights packed as integers, "int8" or "int4": the nearest ones.

        `room` gives the memory for them.
        """
        (columns, inner), weight = weight.shape, weight.contiguous()
        packed = room_for_integers(columns, inner, kind, room)
        self._functions["pack"](weight.data_ptr(), packed.data.data_ptr(), columns, inner, INTEGERS[kind])
        return packed

    def product(self, matrix: Matrix) -> Callable[[Tensor], Tensor]:
        """Return a function that maps x (…, inner) float32 to (…, columns) float32.

        It raises a RuntimeError for an x of another type or shape. A pass calls hundreds of them, some for microseconds
        only, so facts about the weights are looked up once.
        """
        inner, columns, at = matrix.inner, matrix.columns, ctypes.byref(matrix)
        linear, empty, float32 = self._functions["linear"], torch.empty, torch.float32

        def product(x: Tensor) -> Tensor:
            *shape, width = x.shape
            if width != inner or x.dtype is not float32:
                raise RuntimeError(f"A packed linear layer of {inner} inputs does not take {x.dtype} {tuple(x.shape)}.")
            x = x.contiguous()
            y = empty(*shape, columns)
            linear(at, x.data_ptr(), y.data_ptr(), x.numel() // inner, self.threads)
            return y

        return product

    def columns(self, matrix: Matrix, chosen: Tensor) -> Tensor:
        """Return the weights (…, inner) float32 of columns (…) int64 of a matrix, as an embedding does.

        Raises:
            IndexError: it lacks one of them.
        """
        if chosen.numel() and not 0 <= int(chosen.min()) <= int(chosen.max()) < matrix.columns:
            raise IndexError(f"A token is not among {matrix.columns} embeddings: {int(chosen.max())}.")
        at, found = chosen.contiguous(), torch.empty(*chosen.shape, matrix.inner)
        self._functions["columns"](ctypes.byref(matrix), at.data_ptr(), at.numel(), found.data_ptr())
        return found

    def layer(self, weights: Layer, own: LayerPass, states: Tensor) -> None:
        """Compute a decoder layer: the states (…, T, width) float32 after it replace those before it; the keys and
        values of the slots go into the cache.
        """
        self._functions["layer"](ctypes.byref(weights), ctypes.byref(own), states.data_ptr(), self.threads)

    def whole_pass(
        self, model: Model, passes: "ctypes.Array[LayerPass]", tokens: Sequence[int], read: int
    ) -> tuple[Tensor, Tensor]:
        """Compute a pass over tokens (T,); the keys and values of the slots go into the cache.

        Returns:
            The logits (read, vocabulary) float32 of the last `read` slots, and the (T, width) float32 states of all
            after the final norm.

        Raises:
            IndexError: the model has no embedding of a token.
        """
        if not 0 <= min(tokens) <= max(tokens) < model.embedding.columns:
            raise IndexError(f"A token is not among {model.embedding.columns} embeddings: {max(tokens)}.")
        logits, states = torch.empty(read, model.output.columns), torch.empty(len(tokens), model.embedding.inner)
        given = ctypes.byref(model), passes, (NUMBER * len(tokens))(*tokens), states.data_ptr(), read
        self._functions["pass"](*given, logits.data_ptr(), self.threads)
        return logits, states

    def best(self, logits: Tensor) -> tuple[list[int], list[float]]:
        """Return the token with the largest logit in each row of (T, vocabulary) float32, the first of equal ones, and
        its log-probability.
        """
        logits, (rows, vocabulary) = logits.contiguous(), logits.shape
        found = (Best * rows)()
        self._functions["best"](logits.data_ptr(), rows, vocabulary, found, self.threads)
        return [one.index for one in found], [one.log_share for one in found]

    def largest(self, logits: Tensor, count: int) -> NDArray[np.int64]:
        """Return (T, count) int64, the tokens with the largest logits in each row of (T, vocabulary) float32, the
        largest first.
        """
        logits, (rows, vocabulary) = logits.contiguous(), logits.shape
        found = np.empty((rows, count), np.int64)
        self._functions["largest"](logits.data_ptr(), rows, vocabulary, count, found.ctypes.data, self.threads)
        return found

    def norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """Return x (…, width) float32, divided by the root mean square of each row, times weight (width,) float32."""
        width = x.shape[-1]
        if x.dtype is not torch.float32 or weight.shape != (width,):
            raise RuntimeError(f"A norm of {tuple(weight.shape)} weights does not take {x.dtype} {tuple(x.shape)}.")
        x = x.contiguous()
        y = torch.empty_like(x)
        numbers = (x.numel() // width, width, epsilon)
        self._functions["norm"](x.data_ptr(), weight.data_ptr(), y.data_ptr(), *numbers)
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

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float, cap: float | None = None
    ) -> Tensor:
        """Return the attention, (1, T, heads, value_dim) float32, of tensors that it `takes`.

        Args:
            query: (1, heads, T, key_dim) float32.
            key: (1, key_value_heads, L + T, key_dim) float32.
            value: (1, key_value_heads, L + T, value_dim) float32.
            mask: (1, 1, T, L + T) bool.
            scale: factor of the scores.
            cap: that of the scores, cap · tanh(score / cap), if any.
        """
        _, heads, slots, key_dim = query.shape
        _, key_value_heads, tokens, value_dim = value.shape
        out = torch.empty(1, slots, heads, value_dim)
        given = Attention(
            query.data_ptr(), *query.stride()[1:3],
            Rows(key.data_ptr(), *key.stride()[1:3], key_dim),
            Rows(value.data_ptr(), *value.stride()[1:3], value_dim),
            mask.data_ptr(), mask.stride(2), out.data_ptr(), heads, key_value_heads, slots, tokens,
            scale, cap or 0.0,
        )  # fmt: skip
        self._functions["attention"](ctypes.byref(given), self.threads)
        return out

    def is_right(self) -> bool:
        """Return whether the kernels compute the same as torch on this machine: a compiler may be faulty."""
        dice = torch.Generator().manual_seed(0)
        x, weight = torch.randint(-127, 127, (5, 70), generator=dice).float(), torch.randn(70, 70, generator=dice)
        x[:, ::GROUPED] = 127  # so that rounding to 8 bits changes nothing
        packed = [pack(weight.to(kind).float(), self.tiles) for kind in FLOATS.values()]
        packed += [self.rounded(weight, kind) for kind in INTEGERS]
        found = [self.product(Matrix.of(one))(x) / 100 for one in packed]
        expected = [x @ one.weight().T / 100 for one in packed]
        chosen = torch.tensor([69, 3, 33])
        found += [self.columns(Matrix.of(one), chosen) for one in packed]
        expected += [one.rows(chosen) for one in packed]
        largest = found[-1].log_softmax(-1).max(-1)
        tokens, log_probabilities = self.best(found[-1])
        if tokens != largest.indices.tolist() or self.largest(found[-1], 2)[:, 0].tolist() != tokens:
            return False
        found.append(torch.tensor(log_probabilities))
        expected.append(largest.values)
        found.append(self.norm(x, weight[0], 0.1))
        expected.append(torch.rms_norm(x, (70,), weight[0], 0.1))
        query, key, value = (torch.randn(1, 2, tokens, 48, generator=dice) for tokens in (5, 30, 30))
        mask = torch.ones(1, 1, 5, 30, dtype=torch.bool).tril(25)
        found.append(self.attention(query, key, value, mask, 0.5))
        found.append(self.attention(query, key, value, mask, 0.5, 2.0))
        attended = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.5)
        expected.append(attended.transpose(1, 2))
        expected.append(capped_attention(query, key, value, mask, 0.5, 2.0))
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
