"""llama.cpp on a GGUF file as it is, as a contestant of `benchmarks.real`: the library that our runner calls.

Its loop is what its interface makes of a greedy answer: one `llama_decode` a token with llama.cpp's own settings, and
the largest logit. Its server, run in this process, adds its own n-gram speculation.
"""

import json
import os
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

from ladechat.model.llama_cpp.library import PACKAGE, load_library
from ladechat.model.llama_cpp.structures import Batch

CONTEXT = 8192
"""The longest text. Memory for its cache is reserved; what a pass takes depends only on the tokens that are cached."""

BATCH = 512
"""The tokens of a prompt that are read at once: llama.cpp's own number."""

SPIN_COUNT = "300000"
"""How long OpenMP lets threads wait for each other awake, as it does in llama.cpp's own programs; ours wait less."""

SPECULATIONS = ("ngram-simple", "ngram-mod")
"""The kinds of llama.cpp's own speculation that need no other model."""

VERSION = f"{PACKAGE} {version(PACKAGE)}"


def label(file: Path) -> str:
    """The name of a file in those of methods: of `model.Q4_1.gguf` it is Q4_1."""
    return file.stem.rpartition(".")[2]


class Loop:
    """Greedy answers by llama.cpp's interface, with its own settings.

    Args:
        file: a GGUF file.
        threads: how many a pass uses.
    """

    def __init__(self, file: Path, threads: int) -> None:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
        self._library = load_library()
        model = self._library.llama_model_load_from_file(str(file).encode(), self._library.llama_model_default_params())
        if model is None:
            raise RuntimeError(f"llama.cpp cannot read {file}.")
        options = self._library.llama_context_default_params()
        options.n_ctx, options.n_batch = CONTEXT, BATCH
        options.n_threads = options.n_threads_batch = threads
        self._context = self._library.llama_init_from_model(model, options)
        self._memory = self._library.llama_get_memory(self._context)
        self._vocabulary = self._library.llama_vocab_n_tokens(self._library.llama_model_get_vocab(model))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a prompt, beginning with an empty cache: the fields of `benchmarks.real_worker.ANSWER`."""
        if request["temperature"]:
            raise ValueError("The loop takes the largest logit only.")
        self._library.llama_memory_clear(self._memory, False)
        prompt, answer = request["prompt"], list[int]()
        began = first = time.perf_counter()
        for start in range(0, len(prompt), BATCH):
            self._decode(prompt[start : start + BATCH], start)
        while True:
            answer.append(self._likeliest())
            if len(answer) == 1:
                first = time.perf_counter()
            if len(answer) == request["tokens"] or answer[-1] in request["eos"]:
                break
            self._decode(answer[-1:], len(prompt) + len(answer) - 1)
        times = {"first_seconds": first - began, "rest_seconds": time.perf_counter() - first}
        return {"tokens": answer, "first_tokens": 1, "passes": len(answer), "slots": len(answer), **times}

    def _decode(self, tokens: list[int], place: int) -> None:
        """Run a pass over tokens from a place of the text on; it gives the logits of the last one."""
        count = len(tokens)
        ids = np.zeros(1, np.int32)
        arrays: dict[str, NDArray[Any]] = {
            "token": np.array(tokens, np.int32),
            "pos": np.arange(place, place + count, dtype=np.int32),
            "n_seq_id": np.ones(count, np.int32),
            "seq_id": np.full(count, ids.ctypes.data, np.uint64),
            "logits": np.array([0] * (count - 1) + [1], np.int8),
        }
        fields: dict[str, Any] = dict(Batch._fields_)
        batch = Batch(count, **{name: values.ctypes.data_as(fields[name]) for name, values in arrays.items()})
        if self._library.llama_decode(self._context, batch) != 0:
            raise RuntimeError("llama.cpp has refused a pass.")

    def _likeliest(self) -> int:
        logits = self._library.llama_get_logits(self._context)
        return int(np.ctypeslib.as_array(logits, (self._vocabulary,)).argmax())


class Server:
    """Asks llama.cpp's server, which runs in this process and speculates by n-grams.

    Args:
        file: a GGUF file.
        threads: how many a pass uses.
        speculation: one of `SPECULATIONS`.
    """

    def __init__(self, file: Path, threads: int, speculation: str) -> None:
        package: Any = import_module(PACKAGE)
        options = package.CommonParams()
        options.model.path, options.n_ctx, options.n_parallel = str(file), CONTEXT, 1
        options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
        name = f"COMMON_SPECULATIVE_TYPE_{speculation.upper().replace('-', '_')}"
        options.speculative.types = [getattr(package.common_speculative_type, name)]
        options.verbosity = 0
        self._server = package.Server(options)  # listens on this machine alone, as long as it is referred to
        self._address = self._server.listening_address

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a prompt, beginning with an empty cache: the fields of `benchmarks.real_worker.ANSWER`.

        The times are the server's own: what it takes to read a request and to write an answer counts for nothing.
        """
        asked = {"prompt": request["prompt"], "n_predict": request["tokens"], "cache_prompt": False}
        asked |= {"temperature": request["temperature"], "seed": request["seed"], "samplers": ["temperature"]}
        body = json.dumps({**asked, "return_tokens": True}).encode()
        with urlopen(Request(f"{self._address}/completion", body, {"Content-Type": "application/json"})) as reply:
            found = json.load(reply)
        timings, tokens = found["timings"], found["tokens"]
        drafted, accepted = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
        passes = timings["predicted_n"] - accepted
        times = {"first_seconds": timings["prompt_ms"] / 1000, "rest_seconds": timings["predicted_ms"] / 1000}
        return {"tokens": tokens, "first_tokens": 1, "passes": passes, "slots": passes + drafted, **times}
