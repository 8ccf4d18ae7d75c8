"""Finds llama.cpp inside the package xllamacpp, declares the functions used, and checks that the declarations fit."""

import ctypes
import importlib.util
import os
import re
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int32, c_size_t, c_void_p
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ladechat.model.llama_cpp.structures import Batch, ContextParams, LogCallback, ModelParams

PACKAGE = "xllamacpp"
"""The package whose one shared object exports the whole C interface. Its wheels need no compiler."""

ERROR, CONTINUED = 4, 5
"""Levels of the library's log; the second one continues a line."""
MOST_LINES = 20
MOST_BEYOND = 512
FUNCTION = re.compile(r"^(\w+: )+(error loading model( \w+)*: )?(llama_model_loader: )?")
FAILED = "failed to load model"

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [LogCallback, c_void_p]),
    "llama_supports_gpu_offload": (c_bool, []),
    "llama_model_default_params": (ModelParams, []),
    "llama_context_default_params": (ContextParams, []),
    "llama_model_load_from_file": (c_void_p, [c_char_p, ModelParams]),
    "llama_model_free": (None, [c_void_p]),
    "llama_model_get_vocab": (c_void_p, [c_void_p]),
    "llama_model_chat_template": (c_char_p, [c_void_p, c_char_p]),
    "llama_model_n_ctx_train": (c_int32, [c_void_p]),
    "llama_model_n_layer": (c_int32, [c_void_p]),
    "llama_model_n_params": (ctypes.c_uint64, [c_void_p]),
    "llama_model_has_decoder": (c_bool, [c_void_p]),
    "llama_model_has_encoder": (c_bool, [c_void_p]),
    "llama_model_is_recurrent": (c_bool, [c_void_p]),
    "llama_model_is_hybrid": (c_bool, [c_void_p]),
    "llama_model_is_diffusion": (c_bool, [c_void_p]),
    "llama_model_ftype": (c_int32, [c_void_p]),
    "llama_ftype_name": (c_char_p, [c_int32]),
    "llama_model_meta_val_str": (c_int32, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "llama_vocab_n_tokens": (c_int32, [c_void_p]),
    "llama_vocab_get_text": (c_char_p, [c_void_p, c_int32]),
    "llama_vocab_get_attr": (c_int32, [c_void_p, c_int32]),
    "llama_vocab_is_eog": (c_bool, [c_void_p, c_int32]),
    "llama_vocab_bos": (c_int32, [c_void_p]),
    "llama_vocab_eos": (c_int32, [c_void_p]),
    "llama_vocab_pad": (c_int32, [c_void_p]),
    "llama_tokenize": (c_int32, [c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool]),
    "llama_token_to_piece": (c_int32, [c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool]),
    "llama_init_from_model": (c_void_p, [c_void_p, ContextParams]),
    "llama_free": (None, [c_void_p]),
    "llama_get_memory": (c_void_p, [c_void_p]),
    "llama_decode": (c_int32, [c_void_p, Batch]),
    "llama_get_logits": (POINTER(c_float), [c_void_p]),
    "llama_memory_clear": (None, [c_void_p, c_bool]),
    "llama_memory_seq_rm": (c_bool, [c_void_p, c_int32, c_int32, c_int32]),
    "llama_memory_seq_cp": (None, [c_void_p, c_int32, c_int32, c_int32, c_int32]),
    "llama_memory_seq_keep": (None, [c_void_p, c_int32]),
    "llama_state_seq_get_size": (c_size_t, [c_void_p, c_int32]),
    "llama_state_seq_get_data": (c_size_t, [c_void_p, c_void_p, c_size_t, c_int32]),
    "llama_state_seq_set_data": (c_size_t, [c_void_p, c_void_p, c_size_t, c_int32]),
}
"""The result and the arguments of each function, as llama.h declares them."""

SPIN_COUNT = "3000"
"""How often a thread that waits for the others looks for them before it sleeps: for some tenths of a millisecond.

With 1,000 it sleeps in each layer, and a pass of four tokens takes 28 ms in place of 23.7. With more it holds a core
that others need: with one of two cores taken by another program, 4,000 made 43 ms of a token's 13, and 50,000 made 186;
with both taken, OpenMP's own 300,000 made 2,200."""

QUICK = ("llama_vocab_get_text", "llama_vocab_get_attr", "llama_vocab_is_eog")
"""Functions that are called for each token of the vocabulary. They return at once: letting other threads of Python run
meanwhile, as all others do, would take longer than they."""

MODEL_DEFAULTS: dict[str, Any] = {"n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "main_gpu": 0}
MODEL_DEFAULTS |= {"kv_overrides": None, "vocab_only": False, "check_tensors": False, "use_extra_bufts": True}
CONTEXT_DEFAULTS: dict[str, Any] = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "n_threads": 4}
CONTEXT_DEFAULTS |= {"rope_scaling_type": -1, "flash_attn_type": -1, "yarn_ext_factor": -1.0, "defrag_thold": -1.0}
CONTEXT_DEFAULTS |= {"type_k": 1, "type_v": 1, "newer": None, "embeddings": False, "offload_kqv": True, "no_perf": True}
CONTEXT_DEFAULTS |= {"op_offload": True, "swa_full": True, "kv_unified": False, "samplers": None, "n_samplers": 0}
"""The values that the library itself gives fields before, between and after those that are set: where a field was added
or removed, one of them reads another one's bytes."""


class LibraryMismatch(Exception):
    """The installed library is not the one that the declarations describe: the message says so."""


def is_installed() -> bool:
    """Return whether the package that has llama.cpp is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def wait_briefly() -> None:
    """Have the threads of a pass sleep soon while they wait for each other.

    OpenMP reads that while it is loaded, with torch if that is imported: call it before.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


@cache
def load_library() -> Any:
    """Return the declared functions of the shared object, initialised once for the process.

    Raises:
        LibraryMismatch: it cannot be loaded, lacks a function, or its structures have other fields.
    """
    wait_briefly()
    (shared_object, held), library = _shared_objects(), SimpleNamespace()
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(held if name in QUICK else shared_object, name, None)
        if function is None:
            raise _mismatch(f"it has no function {name}")
        function.restype, function.argtypes = result, arguments
        setattr(library, name, function)
    _check_fields(library.llama_model_default_params, ModelParams, MODEL_DEFAULTS)
    _check_fields(library.llama_context_default_params, ContextParams, CONTEXT_DEFAULTS)
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # else a failed assertion starts a debugger
    library.llama_log_set(LOG.callback, None)
    library.llama_backend_init()
    return library


def _check_fields(defaults: Any, structure: type[ctypes.Structure], expected: dict[str, Any]) -> None:
    """Raise an error if the library's own values are not where the declared fields are."""

    class WithRoom(ctypes.Structure):
        """The structure, and room for what a larger one would write beyond it."""

        _fields_ = (("known", structure), ("beyond", ctypes.c_char * MOST_BEYOND))

    defaults.restype = WithRoom
    found = defaults().known
    defaults.restype = structure
    for field, value in expected.items():
        if getattr(found, field) != value:
            raise _mismatch(f"its {structure.__name__} have other fields, as {field} shows")


def _shared_objects() -> tuple[ctypes.CDLL, ctypes.PyDLL]:
    """Return the shared object, for functions that let other threads run meanwhile and for those that do not."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]
    files = [file for folder in folders for file in sorted(folder.glob(f"{PACKAGE}*")) if _is_library(file)]
    if not files:
        raise _mismatch("it has no shared object")
    try:
        return ctypes.CDLL(str(files[0])), ctypes.PyDLL(str(files[0]))
    except OSError as error:
        raise _mismatch(f"it cannot be loaded: {error}") from error


def _is_library(file: Path) -> bool:
    return file.suffix in (".so", ".dylib", ".pyd")


def _mismatch(why: str) -> LibraryMismatch:
    installed = version(PACKAGE) if is_installed() else "none"
    return LibraryMismatch(f"The {PACKAGE} that is installed ({installed}) is not the one that is known: {why}.")


class _Log:
    """Collects the library's errors: the last one explains a failure."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._level = 0
        self.callback = LogCallback(self._receive)  # C has its address only

    def _receive(self, level: int, text: bytes | None, _data: object) -> None:
        said = (text or b"").decode(errors="replace")
        if level != CONTINUED:
            self._level = level
            if level >= ERROR:
                self._lines = [*self._lines[-MOST_LINES:], said]
        elif self._level >= ERROR and self._lines:
            self._lines[-1] += said

    def clear(self) -> None:
        """Forget what was said so far."""
        self._lines.clear()

    def reason(self) -> str:
        """Return the last error that is a reason, without the names of functions; "" where there is none."""
        said = [FUNCTION.sub("", " ".join(line.split())) for line in self._lines]
        return next((line for line in reversed(said) if line and not line.startswith(FAILED)), "")


LOG = _Log()
