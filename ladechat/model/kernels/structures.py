"""The structures that the kernels take, as C++ declares them in `csrc`."""

import ctypes
from typing import ClassVar

from torch import Tensor

from ladechat.model.kernels.packing import KINDS, Packed

ACTIVATIONS = ("silu", "gelu_tanh")
"""Those of an MLP, numbered as in `csrc/layer.h`."""

POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int64


class Matrix(ctypes.Structure):
    """A linear layer, as in `csrc/linear.h`.

    Attributes:
        tensors: its weights and its bias, which stay in memory with it, but not with a copy in another structure.
    """

    tensors: tuple[Tensor, Tensor | None]

    _fields_: ClassVar = [
        ("kind", NUMBER), ("packed", POINTER), ("bias", POINTER), ("inner", NUMBER), ("columns", NUMBER)
    ]  # fmt: skip

    @classmethod
    def of(cls, packed: Packed, bias: Tensor | None = None) -> "Matrix":
        """Return the layer of packed weights and a bias (columns,) float32, or none."""
        at = None if bias is None else bias.data_ptr()
        matrix = cls(KINDS.index(packed.kind), packed.data.data_ptr(), at, packed.inner, packed.columns)
        matrix.tensors = packed.data, bias
        return matrix


class Layer(ctypes.Structure):
    """The weights of a decoder layer, as in `csrc/layer.h`. A norm that it lacks is None; without a cap, that is 0."""

    MATRICES = ("query", "key", "value", "output", "gate", "up", "down")
    NORMS = ("attention_norm", "query_norm", "key_norm", "after_attention", "mlp_norm", "after_mlp")
    _fields_: ClassVar = [
        *((name, Matrix) for name in MATRICES),
        *((name, POINTER) for name in NORMS),
        ("head_dim", NUMBER),
        ("activation", NUMBER),
        *((name, ctypes.c_float) for name in ("epsilon", "scale", "cap")),
    ]


class LayerPass(ctypes.Structure):
    """The slots of a pass in a decoder layer, as in `csrc/layer.h`."""

    _fields_: ClassVar = [
        *((name, POINTER) for name in ("keys", "values")),
        *((name, NUMBER) for name in ("key_head", "key_token", "value_head", "value_token", "slots", "cached")),
        *((name, POINTER) for name in ("cosines", "sines", "angles", "seen")),
        ("seen_slot", NUMBER),
    ]


class Model(ctypes.Structure):
    """The embedding of a model, its layers, the norm after them, and the output layer, as in `csrc/layer.h`."""

    _fields_: ClassVar = [
        ("embedding", Matrix),
        ("scale", ctypes.c_float),
        ("layers", ctypes.POINTER(Layer)),
        ("count", NUMBER),
        ("norm", POINTER),
        ("epsilon", ctypes.c_float),
        ("output", Matrix),
    ]


class Best(ctypes.Structure):
    """The largest number of a row and the logarithm of its share in the softmax, as in `csrc/best.h`."""

    _fields_: ClassVar = [("index", NUMBER), ("log_share", ctypes.c_float)]


class Rows(ctypes.Structure):
    """Keys or values of all heads, as in `csrc/attention.h`."""

    _fields_: ClassVar = [("data", POINTER), *((name, NUMBER) for name in ("head", "token", "dim"))]


class Attention(ctypes.Structure):
    """The inputs of attention, and its output, as in `csrc/attention.h`."""

    _fields_: ClassVar = [
        ("queries", POINTER),
        *((name, NUMBER) for name in ("query_head", "query_slot")),
        *((name, Rows) for name in ("keys", "values")),
        ("seen", POINTER),
        ("seen_slot", NUMBER),
        ("out", POINTER),
        *((name, NUMBER) for name in ("heads", "key_value_heads", "slots", "tokens")),
        *((name, ctypes.c_float) for name in ("scale", "cap")),
    ]
