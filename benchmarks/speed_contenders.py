"""Who takes part in `benchmarks.speed`: ours eager and compiled, transformers, and the authors' implementation."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.floor import Machine, bandwidth, matrix_rate, work_of_model
from benchmarks.taking_turns import Stepping
from ladechat.bench.contenders import Answer, Contender, Ours, Transformers
from ladechat.bench.prompts import Prompt
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Decoder, Limits
from ladechat.decoder.tuned import TunedDecoder
from ladechat.model.compiler import use_compiled
from ladechat.model.cost import PassCosts
from ladechat.model.eager import EagerRunner
from ladechat.model.kernels import PackedLinear, with_kernels
from ladechat.model.loading import LoadedModel
from ladechat.model.passes import Passes

GRID = [
    *((0, 4, 1), (0, 4, 3), (0, 8, 1), (0, 8, 3)),
    *((2, 3, 2), (3, 3, 3), (5, 3, 5), (7, 3, 7), (5, 5, 5), (7, 5, 7), (15, 5, 15)),
]
DEFAULT = (5, 3, 5)
"""Of the grid, what always takes part."""
SHOWN = ("plain", f"lookahead {','.join(map(str, DEFAULT))}", "auto")
"""What takes part without the grid."""
BASE = "transformers generate"
BESIDE_COMPILED = f"{BASE}, beside compiled"
"""The same in the rounds of compiled passes, minutes after the others."""
IN_TURNS, COMPILED_IN_TURNS = "eager in turns", "compiled in turns"
TURN_SECONDS = 0.02
"""How long turns are with compiled passes, which live on what the ones before have left in the processor's caches."""
REFERENCE = "the authors' implementation"
THEIR_PLAIN = f"{REFERENCE}: transformers 4.36, plain"

# A Llama of 113 M parameters, whose passes are limited by memory and arithmetic more than by dispatch.
LARGER: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "tie_word_embeddings": True,
    "max_position_embeddings": 2048,
}


class Through:
    """A contender of ours with the passes that its runner has.

    As in the app, the n-gram pool and what auto has learnt live as long as the session does. All prompts of a kind, in
    their order, are one; where it begins nothing is known but what passes cost, in every round anew.
    """

    def __init__(
        self, name: str, loaded: LoadedModel, make: Callable[[Runner], Decoder], begins: set[tuple[int, ...]]
    ) -> None:
        self.name = name
        self._runner, self._make, self._begins = loaded.runner, make, begins
        self._decoder: Decoder | None = None
        self._ours = Ours(name, loaded, self._same)

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Contender.answer`."""
        if tuple(prompt) in self._begins:
            self._decoder = None
        self._same(self._runner)  # measures what passes cost, once
        return self._ours.answer(prompt, limits)

    def _same(self, runner: Runner) -> Decoder:
        self._decoder = self._decoder or self._make(runner)
        return self._decoder


class Reference:
    """The authors' implementation, in an environment of its own: see `benchmarks.reference`."""

    def __init__(self, name: str, python: Path, checkpoint: Path, *way: str) -> None:
        self.name = name
        program = Path(__file__).with_name("reference.py")
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", str(program), str(checkpoint), *way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
        )
        self.answer([5, 5], Limits(2))  # others shall not be measured while it is still loading

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Contender.answer`. How long the first step took is measured by an answer of one token before."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([limits.max_new_tokens, *prompt]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} has ended; what it wrote on standard error says why.")
        told = json.loads(line)
        return Answer(
            tokens=tuple(told["tokens"]),
            first_tokens=1,
            passes=told["passes"],
            first_seconds=told["first_seconds"],
            rest_seconds=told["seconds"] - told["first_seconds"],
            tested=None,
        )


@dataclass(frozen=True)
class Contenders:
    """All that take part.

    Attributes:
        stepping: that take turns; plain decoding first.
        others: that answer in one go, transformers first; the decoders of `SHOWN` once more.
    """

    stepping: list[Stepping]
    others: list[Contender]


def make_contenders(loaded: LoadedModel, prompts: Sequence[Prompt], grid: bool, reference: Path | None) -> Contenders:
    """All that take part: with compiled passes if the runner of the model has some; if not, the authors' too."""
    runner = loaded.runner
    assert isinstance(runner, EagerRunner)
    compiled = runner.compiled is not None
    way, in_turns = ("compiled", COMPILED_IN_TURNS) if compiled else ("eager", IN_TURNS)
    turn_seconds = TURN_SECONDS if compiled else 0.0
    decoders = _decoders(prompts[0], grid)
    begins = {tuple(first.token_ids) for first in {prompt.kind: prompt for prompt in reversed(prompts)}.values()}

    def of_its_own() -> EagerRunner:
        made = EagerRunner(runner.model, runner.context_length)
        made.compiled = runner.compiled
        return made

    bases: list[Contender] = [Transformers(BESIDE_COMPILED if compiled else BASE, loaded)]
    if reference is not None and not compiled:
        bases.append(Reference(THEIR_PLAIN, reference, loaded.folder, "plain"))
        bases.append(Reference(f"{REFERENCE}: 5,3,5", reference, loaded.folder, "lookahead", "5", "3", "5"))
    through = replace(loaded, runner=of_its_own())
    return Contenders(
        [Stepping(f"{name}, {in_turns}", of_its_own(), make, turn_seconds) for name, make in decoders.items()],
        [*bases, *(Through(f"{name}, {way}", through, decoders[name], begins) for name in SHOWN)],
    )


def _decoders(prompt: Prompt, grid: bool) -> dict[str, Callable[[Runner], Decoder]]:
    """How each decoder of ours is made, by its name."""
    known: dict[int, PassCosts] = {}
    """By `id` of the runner, all of which live as long as this."""

    def auto(runner: Runner) -> Decoder:
        """What passes cost is measured once for all sessions, before the first, as when the app has loaded a model."""
        if id(runner) not in known:
            known[id(runner)] = PassCosts(runner)
            for _ in runner.prefill(prompt.token_ids):
                pass
            known[id(runner)].refresh()
        return TunedDecoder(LookaheadDecoder(runner), known[id(runner)])

    def fixed(settings: LookaheadSettings) -> Callable[[Runner], Decoder]:
        return lambda runner: LookaheadDecoder(runner, settings)

    return {
        **dict(zip(SHOWN, (AutoregressiveDecoder, fixed(LookaheadSettings(*DEFAULT)), auto), strict=True)),
        **{
            ",".join(map(str, numbers)): fixed(LookaheadSettings(*numbers))
            for numbers in GRID
            if grid and numbers != DEFAULT
        },
    }


def passes_of(loaded: LoadedModel) -> dict[str, Passes | None]:
    """Eager passes, and compiled ones if they are here; `ladechat bench` compiles them."""
    use_compiled(loaded.runner, loaded.folder, "compiled")
    compiled = loaded.runner.compiled
    if compiled is not None:
        compiled.look()
    return {"eager": None, "compiled": compiled} if compiled is not None and compiled.sizes else {"eager": None}


def pass_costs(loaded: LoadedModel, ways: Mapping[str, Passes | None]) -> dict[str, Any]:
    """The milliseconds of passes by their slots, of this model and of a larger random one, beside their floor."""
    found: dict[str, Any] = {}
    for way, passes in ways.items():
        loaded.runner.compiled = passes
        found[f"{loaded.name}, {way}"] = _costs(loaded.runner)
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**LARGER)).eval()
    name = f"a random Llama of {model.num_parameters() / 1e6:.0f} M parameters, eager"
    found[name] = _costs(EagerRunner(model, LARGER["max_position_embeddings"]))
    return found


def _costs(runner: Runner) -> dict[str, Any]:
    """Behind 100 tokens: each pass, and the part of it that memory and arithmetic need at least."""
    for _ in runner.prefill([5] * 100):
        pass
    costs = PassCosts(runner)
    costs.refresh()
    model: Any = runner.model  # type: ignore[attr-defined]  # no part of what a decoder needs
    work = work_of_model(model)
    if getattr(runner, "compiled", None) is not None:  # which read weights as their kernels have them
        layers: list[Any] = [layer for layer in with_kernels(model).modules() if isinstance(layer, PackedLinear)]
        work = replace(work, weight_bytes=sum(layer.packed.nbytes for layer in layers))
    machine = Machine(bandwidth(work.weight_bytes, model.dtype, model.device), matrix_rate(model.dtype, model.device))
    return {
        "ms": {str(slots): round(1000 * seconds, 3) for slots, seconds in costs.known().items()},
        "part_of_it_that_is_the_floor": {
            str(slots): round(work.seconds(slots, 99, machine) / seconds, 3) for slots, seconds in costs.known().items()
        },
    }
