"""The kernels that compiled passes of a small model on a CPU spend their time in, and what reads its logits: `csrc`.

They are built by the C++ compiler that torch's own compiler needs too, and are operators of torch,
`ladechat::packed_linear` and `ladechat::slot_attention`, which a compiled pass calls without Python.
"""

import copy
import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.pytorch_utils import Conv1D

SOURCES = sorted(Path(__file__).with_name("csrc").iterdir())

COLUMNS = 32
"""Columns of a block of packed weights."""

ATTENTION = "ladechat"
"""What transformers calls attention by `slot_attention`."""

TENSOR = "AtenTensorHandle"
DECLARATIONS = {
    "packed_linear": f"AOTITorchError aoti_torch_cpu_packed_linear({TENSOR}, {TENSOR}, int64_t, {TENSOR}*)",
    "slot_attention": "AOTITorchError aoti_torch_cpu_slot_attention("
    f"{TENSOR}, {TENSOR}, {TENSOR}, {TENSOR}, double, {TENSOR}*)",
}
"""The functions of the library by their operators, as torch's compiler wants them declared."""

_operators: Any = torch.library.Library("ladechat", "DEF")  # type: ignore[no-untyped-call]  # torch leaves it untyped
_operators.define("packed_linear(Tensor x, Tensor packed, int columns) -> Tensor")
_operators.define("slot_attention(Tensor query, Tensor keys, Tensor values, Tensor mask, float scale) -> Tensor")
_library: ctypes.CDLL | None = None


def compiler() -> str | None:
    """The C++ compiler of this machine, the one that torch's own uses; None if there is none."""
    name = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    return shutil.which(name)


def build(library: Path, threads: int, processor: str = "native") -> None:
    """Make the library of the kernels.

    Args:
        library: the file to write.
        threads: how many threads a large product is shared by.
        processor: what it is made for, as the compiler calls it; "native" is this one.

    Raises:
        RuntimeError: the C++ compiler does not take the kernels.
        OSError: it does not run, or was ended.
    """
    torch_folder = Path(torch.__file__).parent
    command = [compiler() or "g++", "-std=c++20", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-w"]
    command += [f"{'-mcpu' if sys.platform == 'darwin' else '-march'}={processor}", f"-DTHREADS={threads}"]
    if threads > 1 and sys.platform != "darwin":
        command.append("-fopenmp")
    command += [*(str(one) for one in SOURCES if one.suffix == ".cpp"), "-o", str(library)]
    command += [f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}", "-ltorch_cpu"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0:
        raise OSError(f"The C++ compiler was ended by signal {-done.returncode}.")
    if done.returncode:
        raise RuntimeError(f"The kernels cannot be compiled: {done.stderr}")


def load(library: Path) -> None:
    """Have the operators, and compiled passes, use a library. One is enough for a process: a further one is not read.

    Raises:
        OSError: it is not there, or is none for this machine.
    """
    global _library
    if _library is None:
        # For all to see: compiled passes find the functions by their names.
        _library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        numbers, place = ctypes.c_int64, ctypes.c_void_p
        _library.ladechat_likeliest.argtypes = [place, numbers, numbers, place, place]
        _library.ladechat_likeliest.restype = None


def with_kernels(model: PreTrainedModel) -> PreTrainedModel:
    """The same model, its linear layers and its attention computed by the kernels; all that it does not pack is shared.

    Only of a model in float32: one in another type comes back as it is.
    """
    if model.dtype != torch.float32:
        return model
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    model = copy.deepcopy(model, shared)
    for name, module in list(model.named_modules()):
        if type(module) in (nn.Linear, Conv1D):
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, PackedLinear(module))
    if model._supports_attention_backend:  # others look for the names they know, and take another way
        model.config._attn_implementation = ATTENTION
    return model


class PackedLinear(nn.Module):
    """A linear layer whose weights lie in the order in which `packed_linear` reads them.

    Args:
        linear: an `nn.Linear`, or a `Conv1D`, which is one with its weights transposed.
    """

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        weight: Any = linear.weight
        rows = (weight.t() if isinstance(linear, Conv1D) else weight).detach()
        self._columns = len(rows)
        self.register_buffer("packed", pack(rows))
        self.bias: Any = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """X (…, inner) float32; (…, columns) comes out."""
        y: Tensor = torch.ops.ladechat.packed_linear(x.contiguous(), self.packed, self._columns)
        return y if self.bias is None else y + self.bias


def pack(weight: Tensor) -> Tensor:
    """(columns, inner) weights in blocks of `COLUMNS`: (blocks, inner, COLUMNS), the last one filled up with zeros.

    In 16 bits where these hold every number exactly, as they do for a checkpoint that was saved so: half the memory to
    read, and the same sums.
    """
    columns, inner = weight.shape
    full = torch.cat([weight, weight.new_zeros(-columns % COLUMNS, inner)])
    packed = full.view(-1, COLUMNS, inner).transpose(1, 2).contiguous()
    for short in (torch.float16, torch.bfloat16):
        if torch.equal(packed.to(short).to(packed.dtype), packed):
            return packed.to(short)
    return packed


class Likeliest:
    """Reads the likeliest tokens of logits by the library, which has to be loaded, into memory that is used again."""

    def __init__(self) -> None:
        assert _library is not None
        self._read = _library.ladechat_likeliest
        self._make_room(1)

    def __call__(self, logits: Tensor) -> tuple[list[int], list[float]]:
        """The likeliest token under every row of (T, vocabulary) float32 logits, and its log-probability."""
        rows, vocabulary = logits.shape
        if rows > len(self._tokens):
            self._make_room(rows)
        in_one_piece = logits.contiguous()
        self._read(in_one_piece.data_ptr(), rows, vocabulary, *self._places)
        return self._tokens[:rows].tolist(), self._logprobs[:rows].tolist()

    def _make_room(self, rows: int) -> None:
        self._tokens, self._logprobs = np.empty(rows, np.int64), np.empty(rows, np.float64)
        self._places = self._tokens.ctypes.data, self._logprobs.ctypes.data


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers asks for it: by the kernel where it is one sequence with a mask, else by torch's."""
    plain = attention_mask is not None and attention_mask.dtype == torch.bool and len(query) == 1
    if not plain or query.dtype != torch.float32 or dropout or kwargs.get("position_bias") is not None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **kwargs)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return torch.ops.ladechat.slot_attention(query.contiguous(), key, value, attention_mask, scale), None


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


# --- the operators ---------------------------------------------------------------------------------------------------


@torch.library.register_fake("ladechat::packed_linear", lib=_operators)  # type: ignore[untyped-decorator]  # as above
def _shape_of_linear(x: Tensor, _packed: Tensor, columns: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], columns))


@torch.library.register_fake("ladechat::slot_attention", lib=_operators)  # type: ignore[untyped-decorator]  # as above
def _shape_of_attention(query: Tensor, _keys: Tensor, values: Tensor, _mask: Tensor, _scale: float) -> Tensor:
    return query.new_empty((1, query.shape[2], query.shape[1], values.shape[3]))


def _linear(x: Tensor, packed: Tensor, columns: int) -> Tensor:
    return _called("packed_linear", [x, packed], ctypes.c_int64(columns))


def _attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    return _called("slot_attention", [query, keys, values, mask], ctypes.c_double(scale))


def _called(operator: str, tensors: list[Tensor], number: Any) -> Tensor:
    """Call a function of the library as compiled passes do."""
    if _library is None:
        raise RuntimeError("The kernels are not loaded.")
    handles = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors(tensors)
    result = ctypes.c_void_p()
    pointers = [ctypes.c_void_p(_get_pointer(handle, None)) for handle in handles]
    failed = getattr(_library, f"aoti_torch_cpu_{operator}")(*pointers, number, ctypes.byref(result))
    torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs(handles)  # which frees them
    if failed:
        raise RuntimeError(f"{operator} does not take these tensors.")
    tensor: Tensor = torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(_new_capsule(result, None, None))
    return tensor


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_operators.impl("packed_linear", _linear, "CPU")
_operators.impl("slot_attention", _attention, "CPU")
