"""llama.cpp as a contestant of `benchmarks.real`, called through llama-cpp-python by a process that has it.

Each pass is one `llama_decode` with the defaults of llama.cpp (flash attention and weights repacked for the processor
where it chooses so, a cache in 16 bits), and each token is taken by its own sampler.
"""

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

KINDS = {"BF16": None, "Q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0", "Q4_0": "LLAMA_FTYPE_MOSTLY_Q4_0"}
"""What weights are stored as, and llama.cpp's name of it when it quantises those in 16 bits."""

CONTEXT = 8192
"""The longest text. Memory for its cache is reserved; what a pass takes depends only on the tokens that are cached."""

ERROR = 4
"""A level of llama.cpp's log."""

Guess = Callable[[list[int]], Sequence[int]]
"""Drafts after a text."""


def report_errors(level: int, message: bytes, _data: object) -> None:
    """Print what llama.cpp says if it is an error; it says much else."""
    if level == ERROR:
        print(message.decode(errors="replace"), end="", file=sys.stderr)


class LlamaCpp:
    """A model in llama.cpp.

    Args:
        file: its weights in 16 bits, as GGUF.
        kind: one of `KINDS`; other than 16 bits are written into a file beside that one.
        threads: how many a pass uses.

    Raises:
        RuntimeError: llama.cpp refuses the file.
    """

    def __init__(self, file: Path, kind: str, threads: int) -> None:
        self._api: Any = import_module("llama_cpp")
        self._log = self._api.llama_log_callback(report_errors)  # C has its address only
        self._api.llama_log_set(self._log, None)
        file = self._quantized(file, kind)
        model = self._api.llama_model_load_from_file(str(file).encode(), self._api.llama_model_default_params())
        if model is None:
            raise RuntimeError(f"llama.cpp cannot read {file}.")
        options = self._api.llama_context_default_params()
        options.n_ctx = options.n_batch = CONTEXT
        options.n_threads = options.n_threads_batch = threads
        self._context = self._api.llama_init_from_model(model, options)
        self._memory = self._api.llama_get_memory(self._context)
        self._batch = self._api.llama_batch_init(CONTEXT, 0, 1)
        self.weight_bytes = int(self._api.llama_model_size(model))
        self.version = f"llama-cpp-python {version('llama-cpp-python')}"

    def prompt_lookup(self) -> Guess:
        """The n-gram speculation that comes with llama-cpp-python, with its own settings."""
        numpy, speculative = import_module("numpy"), import_module("llama_cpp.llama_speculative")
        draft = speculative.LlamaPromptLookupDecoding()
        return lambda text: draft(numpy.array(text, dtype=numpy.intc)).tolist()

    def answer(
        self, prompt: list[int], most: int, eos: Sequence[int], temperature: float, seed: int, guess: Guess | None
    ) -> dict[str, Any]:
        """Answer a prompt, beginning with an empty cache: the fields of `benchmarks.real_worker.ANSWER`."""
        self._api.llama_memory_clear(self._memory, False)
        sampler = self._sampler(temperature, seed)
        cached, new, answer, passes, slots, first_tokens = 0, prompt, list[int](), 0, 0, 0
        first = began = time.perf_counter()
        while len(answer) < most and not (answer and answer[-1] in eos):
            room = most - len(answer) - 1
            drafts = list(guess(prompt + answer))[:room] if guess and answer else []
            self._decode([*new, *drafts], cached, len(new) - 1)
            emitted = self._accepted(sampler, len(new) - 1, drafts, eos)
            cached += len(new) + len(emitted) - 1
            self._api.llama_memory_seq_rm(self._memory, 0, cached, -1)
            answer += emitted
            new, passes, slots = emitted[-1:], passes + 1, slots + 1 + len(drafts)
            if passes == 1:
                first, first_tokens = time.perf_counter(), len(emitted)
        ended = time.perf_counter()
        self._api.llama_sampler_free(sampler)
        times = {"first_seconds": first - began, "rest_seconds": ended - first}
        return {"tokens": answer, "first_tokens": first_tokens, "passes": passes, "slots": slots, **times}

    def _accepted(self, sampler: Any, index: int, drafts: Sequence[int], eos: Sequence[int]) -> list[int]:
        """The tokens that the model chooses, as long as the drafts agree; `index` is the last token before them."""
        emitted: list[int] = []
        for draft in (*drafts, None):
            emitted.append(int(self._api.llama_sampler_sample(sampler, self._context, index + len(emitted))))
            if emitted[-1] != draft or draft in eos:
                break
        return emitted

    def _decode(self, tokens: Sequence[int], cached: int, first_wanted: int) -> None:
        """Run a pass of tokens after so many cached ones; it gives the logits of all from index `first_wanted` on."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, cached + index
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
            batch.logits[index] = index >= first_wanted
        if self._api.llama_decode(self._context, batch) != 0:
            raise RuntimeError("llama.cpp has refused a pass.")

    def _sampler(self, temperature: float, seed: int) -> Any:
        chain = self._api.llama_sampler_chain_init(self._api.llama_sampler_chain_default_params())
        own = [self._api.llama_sampler_init_greedy()]
        if temperature:
            own = [self._api.llama_sampler_init_temp(temperature), self._api.llama_sampler_init_dist(seed)]
        for one in own:
            self._api.llama_sampler_chain_add(chain, one)
        return chain

    def _quantized(self, file: Path, kind: str) -> Path:
        """The file with weights of a kind; made if it is not the one that is there."""
        how = KINDS[kind]
        if how is None:
            return file
        made = file.with_name(f"{kind}.gguf")
        options = self._api.llama_model_quantize_default_params()
        options.ftype = getattr(self._api, how)
        if self._api.llama_model_quantize(str(file).encode(), str(made).encode(), ctypes.byref(options)) != 0:
            raise RuntimeError(f"llama.cpp cannot quantise {file}.")
        return made
