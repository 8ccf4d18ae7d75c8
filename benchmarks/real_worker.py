"""A process of `benchmarks.real` that answers prompts: an implementation with some methods.

Run as `python benchmarks/real_worker.py IMPLEMENTATION MODEL DECODERS SETTINGS`, with the checkout that is to be
imported on `PYTHONPATH`; the last two are JSON lists, of names and of values of W, N and G. The first line that it
writes says that it is ready, what its methods are called, and what else `Implementation` has; then each line of
standard input is a request, and each line of standard output its reply, both JSON:

    {"method": "auto", "prompt": [1, 2], "tokens": 128, "eos": [2], "temperature": 0.0, "seed": 7}    see `ANSWER`
    {"logits": [1, 2]}                                                 {"logits": […]}, after the last of these tokens
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

Request = dict[str, Any]
Reply = dict[str, Any]
Settings = Sequence[Sequence[int]]
ANSWER = ("tokens", "first_tokens", "passes", "slots", "first_seconds", "rest_seconds")
"""The fields of `ladechat.bench.methods.TimedAnswer` that are sent."""
AUTO, WARM = "auto", "auto warm"
"""The second is the first with drafters that stay from answer to answer, as they do in the app."""


@dataclass
class Implementation:
    """What answers.

    Attributes:
        methods: by their names; the first decodes plainly.
        threads: of a pass.
        weight_bytes: the weights that a pass reads.
        eos: the tokens that end an answer.
        logits: gives those after a text.
        version: of a package that is not described with the machine.
    """

    methods: Mapping[str, Callable[[Request], Reply]]
    threads: int
    weight_bytes: int
    eos: Iterable[int] = ()
    logits: Callable[[list[int]], list[float]] | None = None
    version: str | None = None


def main() -> None:
    """Answer until the input ends."""
    implementation, folder, decoders, settings = sys.argv[1:]
    lines, sys.stdout = sys.stdout, sys.stderr  # whatever libraries print
    made = IMPLEMENTATIONS[implementation](Path(folder), json.loads(decoders), json.loads(settings))
    ready = {"methods": list(made.methods), "eos": sorted(made.eos), "threads": made.threads}
    ready |= {"weight_bytes": made.weight_bytes, "version": made.version}
    print(json.dumps(ready), file=lines, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "logits" in request:
            assert made.logits is not None
            reply: Reply = {"logits": made.logits(request["logits"])}
        else:
            reply = made.methods[request["method"]](request)
        print(json.dumps(reply), file=lines, flush=True)


def of_transformers(folder: Path, _decoders: Sequence[str], _settings: Settings, dtype: str = "") -> Implementation:
    """The `generate` of transformers, on the model as it is: in float32, or in another type that names say."""
    import torch
    from transformers import AutoModelForCausalLM

    from ladechat.bench.methods import Transformers
    from ladechat.bench.options import TRANSFORMERS

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype or "float32").eval()

    @torch.inference_mode()
    def logits(text: list[int]) -> list[float]:
        found: list[float] = model(torch.tensor([text])).logits[0, -1].tolist()
        return found

    named = {f"{name} {dtype}".strip(): Transformers(name, model, **more) for name, more in TRANSFORMERS.items()}
    methods = {name: _method(method) for name, method in named.items()}
    return Implementation(methods, torch.get_num_threads(), read_bytes(model), logits=logits)


def of_this(
    folder: Path, decoders: Sequence[str], settings: Settings, prefix: str = "", quantize: str | None = None
) -> Implementation:
    """Decoders of the checkout that is imported here."""
    from ladechat.model.kernels.build import Build
    from ladechat.model.load import load

    loaded = load(
        folder, folder.name, "cpu", "float32", lambda _: None, lambda _: None, quantize=quantize, kernels=Build()
    )
    return _loaded(loaded, decoders, settings, prefix, read_bytes(loaded.model))


def of_packed(file: Path, decoders: Sequence[str], settings: Settings) -> Implementation:
    """Decoders of this checkout on a GGUF file, which stays packed."""
    from ladechat.model.llama_cpp.library import wait_briefly

    wait_briefly()
    from benchmarks.real_packed import VERSION, label
    from ladechat.model.kernels.build import Build
    from ladechat.model.load import load

    kernels = Build()
    kernels.library()  # loading starts their build, and does not wait for it
    loaded = load(file, file.name, "cpu", "auto", lambda _: None, lambda _: None, kernels=kernels)
    made = _loaded(loaded, decoders, settings, f"{label(file)} ", file.stat().st_size)
    return replace(made, version=f"{VERSION}, {loaded.quantization}")


def _loaded(loaded: Any, decoders: Sequence[str], settings: Settings, prefix: str, weight_bytes: int) -> Implementation:
    from ladechat.bench.methods import Ours, make_methods
    from ladechat.decoder.verify_mask import SlotTree
    from ladechat.model.loading.device import kernel_threads
    from ladechat.registry import Shared
    from ladechat.tuning.costs import PassCosts

    made = make_methods(loaded, decoders, settings)
    if AUTO in decoders:
        shared = Shared(PassCosts(loaded.runner))
        made.append(Ours(WARM, loaded.runner, AUTO, {}, shared, loaded.runner.device, loaded.threads, warm=True))
    methods = {prefix + method.name: _method(method) for method in made}

    def logits(text: list[int]) -> list[float]:
        for _ in loaded.runner.prefill(text):
            pass
        found: list[float] = loaded.runner.forward(SlotTree(text[-1]))[0].tolist()
        loaded.runner.commit([])
        return found

    return Implementation(methods, kernel_threads(), weight_bytes, loaded.eos_ids, logits)


def of_llama_cpp(file: Path, _decoders: Sequence[str], _settings: Settings, kind: str) -> Implementation:
    """llama.cpp with weights of a kind, made of a GGUF file in 16 bits: plain, and with prompt lookup."""
    from benchmarks.real_llama import Guess, LlamaCpp

    threads = int(os.environ["OMP_NUM_THREADS"])
    model = LlamaCpp(file, kind, threads)

    def answer(request: Request, guess: Guess | None) -> Reply:
        prompt, most, eos = request["prompt"], request["tokens"], request["eos"]
        return model.answer(prompt, most, eos, request["temperature"], request["seed"], guess)

    guesses = {f"llama.cpp {kind}": None, f"llama.cpp {kind} prompt lookup": model.prompt_lookup()}
    methods = {name: partial(answer, guess=guess) for name, guess in guesses.items()}
    return Implementation(methods, threads, model.weight_bytes, version=model.version)


def of_loop(file: Path, _decoders: Sequence[str], _settings: Settings) -> Implementation:
    """llama.cpp on a GGUF file as it is, called through its own interface."""
    from benchmarks.real_packed import VERSION, Loop, label

    threads = int(os.environ["OMP_NUM_THREADS"])
    loop = Loop(file, threads)
    methods = {f"llama.cpp {label(file)} as it is": loop.answer}
    return Implementation(methods, threads, file.stat().st_size, version=VERSION)


def of_server(file: Path, _decoders: Sequence[str], _settings: Settings, speculation: str) -> Implementation:
    """llama.cpp's server on a GGUF file as it is, with its own speculation."""
    from benchmarks.real_packed import VERSION, Server, label

    threads = int(os.environ["OMP_NUM_THREADS"])
    server = Server(file, threads, speculation)
    methods = {f"llama.cpp {label(file)} {speculation}": server.answer}
    return Implementation(methods, threads, file.stat().st_size, version=VERSION)


def _method(method: Any) -> Callable[[Request], Reply]:
    def answer(request: Request) -> Reply:
        limits = import_module("ladechat.decoder.step").Limits(request["tokens"], frozenset(request["eos"]))
        found = method.answer(request["prompt"], limits, request["temperature"], request["seed"])
        return {field: getattr(found, field) for field in ANSWER}

    return answer


def read_bytes(model: Any) -> int:
    """The bytes of the weights that a pass of a model reads: of an embedding that is not the output layer, nothing."""
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    of_head, of_embedding, all_weights = (
        {one.data_ptr(): one.nbytes for one in (*module.parameters(), *module.buffers())}
        for module in (head, embedding, model)
    )
    return sum(size for place, size in all_weights.items() if place in of_head or place not in of_embedding)


IMPLEMENTATIONS: dict[str, Callable[[Path, Sequence[str], Settings], Implementation]] = {
    "transformers": of_transformers,
    "transformers bfloat16": partial(of_transformers, dtype="bfloat16"),
    "this": of_this,
    "older": partial(of_this, prefix="old "),
    **{kind: partial(of_this, prefix=f"{kind} ", quantize=kind) for kind in ("int8", "int4")},
    "packed": of_packed,
    "packed, llama.cpp": of_loop,
    **{f"packed, llama.cpp {kind}": partial(of_server, speculation=kind) for kind in ("ngram-simple", "ngram-mod")},
    **{f"llama.cpp {kind}": partial(of_llama_cpp, kind=kind) for kind in ("BF16", "Q8_0", "Q4_0")},
}

if __name__ == "__main__":
    main()
