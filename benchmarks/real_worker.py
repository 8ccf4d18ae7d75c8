"""A process of `benchmarks.real` that answers prompts: transformers alone, this checkout, or an older one.

Run as `python benchmarks/real_worker.py IMPLEMENTATION MODEL DECODERS SETTINGS`, with the checkout that is to be
imported on `PYTHONPATH`; the last two are JSON lists, of names and of values of W, N and G. The first line that it
writes says that it is ready, and what its methods are called; then each line of standard input is a request, and each
line of standard output its reply, both JSON:

    {"method": "auto", "prompt": [1, 2], "tokens": 128, "eos": [2]}    an answer, and what it took: see `ANSWER`
    {"logits": [1, 2]}                                                 {"logits": […]}, after the last of these tokens
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

Reply = dict[str, Any]
Method = Callable[[list[int], int, list[int]], Reply]
Logits = Callable[[list[int]], list[float]]
ANSWER = ("tokens", "first_tokens", "passes", "slots", "first_seconds", "rest_seconds")
"""The fields of `ladechat.bench.methods.Answer` that are sent."""


def main() -> None:
    """Answer until the input ends."""
    implementation, folder, decoders, settings = sys.argv[1:]
    lines, sys.stdout = sys.stdout, sys.stderr  # whatever libraries print
    load = IMPLEMENTATIONS[implementation]
    eos, threads, methods, logits = load(Path(folder), json.loads(decoders), json.loads(settings))
    ready = {"methods": list(methods), "eos": sorted(eos), "threads": threads}
    print(json.dumps(ready), file=lines, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "logits" in request:
            reply: Reply = {"logits": logits(request["logits"])}
        else:
            reply = methods[request["method"]](request["prompt"], request["tokens"], request["eos"])
        print(json.dumps(reply), file=lines, flush=True)


Settings = Sequence[Sequence[int]]
Implementation = tuple[Iterable[int], int, dict[str, Method], Logits]
"""The tokens that end an answer, the threads of a pass, the methods by their names, and what gives logits."""


def of_transformers(folder: Path, _decoders: Sequence[str], _settings: Settings) -> Implementation:
    """The `generate` of transformers, on the model as it is."""
    from transformers import AutoModelForCausalLM

    from ladechat.bench.methods import Transformers
    from ladechat.bench.options import TRANSFORMERS

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logits(text: list[int]) -> list[float]:
        found: list[float] = model(torch.tensor([text])).logits[0, -1].tolist()
        return found

    methods = {name: _method(Transformers(name, model, **more)) for name, more in TRANSFORMERS.items()}
    return (), torch.get_num_threads(), methods, logits


def of_this(folder: Path, decoders: Sequence[str], settings: Settings) -> Implementation:
    """Decoders of this checkout."""
    from ladechat.bench.methods import make_methods
    from ladechat.decoder.verify_mask import SlotTree
    from ladechat.model.kernels.build import Build
    from ladechat.model.load import load
    from ladechat.model.loading.device import kernel_threads

    loaded = load(folder, folder.name, "cpu", "float32", lambda _: None, lambda _: None, kernels=Build())
    methods = {method.name: _method(method) for method in make_methods(loaded, decoders, settings)}

    def logits(text: list[int]) -> list[float]:
        for _ in loaded.runner.prefill(text):
            pass
        found: list[float] = loaded.runner.forward(SlotTree(text[-1]))[0].tolist()
        loaded.runner.commit([])
        return found

    return loaded.eos_ids, kernel_threads(), methods, logits


def _method(method: Any) -> Method:
    def answer(prompt: list[int], tokens: int, eos: list[int]) -> Reply:
        limits = import_module("ladechat.decoder.step").Limits(tokens, frozenset(eos))
        found = method.answer(prompt, limits)
        return {field: getattr(found, field) for field in ANSWER}

    return answer


def of_older(folder: Path, decoders: Sequence[str], settings: Settings) -> Implementation:
    """The same decoders of the checkout that is imported here."""
    eos, threads, methods, logits = of_this(folder, decoders, settings)
    return eos, threads, {f"old {name}": method for name, method in methods.items()}, logits


IMPLEMENTATIONS: dict[str, Callable[[Path, Sequence[str], Settings], Implementation]] = {
    "transformers": of_transformers,
    "this": of_this,
    "older": of_older,
}

if __name__ == "__main__":
    main()
