"""The methods to compare: the decoders of ladechat, and transformers' own `generate`, each as one measured call."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from transformers import GenerationConfig, PreTrainedModel, TemperatureLogitsWarper

from ladechat import registry
from ladechat.bench.options import TRANSFORMERS, BenchRefused, by_hand, numbers_by_hand
from ladechat.catalog import DECODERS
from ladechat.decoder.loop import Decoder
from ladechat.decoder.policy import Policy
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.model.kernels.swap import PackedLinear
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.device import Threads, default_threads
from ladechat.model.runners.kv_cache import CACHE
from ladechat.registry import Shared
from ladechat.tuning.costs import PassCosts


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """One answer with its counts and times.

    Attributes:
        first_tokens: the tokens of the first step.
        passes: forward passes that emitted tokens, without those that only read the prompt.
        slots: the slots of these passes together, without those of the prompt's tokens except the last.
        first_seconds: the time from an empty cache to the end of the first step.
        rest_seconds: the time from there to the last token; for transformers, until `generate` returns.
        tested: drafted tokens that the model verified, by their source; None if unknown.
        accepted: drafted tokens that it accepted, by their source.
    """

    tokens: tuple[int, ...]
    first_tokens: int
    passes: int
    slots: int
    first_seconds: float
    rest_seconds: float
    tested: Mapping[str, int] | None = field(default_factory=dict)
    accepted: Mapping[str, int] = field(default_factory=dict)


class Method(Protocol):
    """A way to generate an answer."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def threads(self) -> Threads:
        """The threads that it computes with on a CPU."""

    def answer(self, prompt: list[int], limits: Limits) -> TimedAnswer:
        """Prefill the prompt, starting with an empty cache, and answer it."""


class Ours:
    """A decoder of ladechat.

    Its drafters are made anew for every answer: they know nothing of other prompts, other methods, or their own answers
    in earlier rounds. Its policy stays, and with it the learnt acceptance rates and costs of passes, as in the app. If
    it is `warm`, its drafters stay too, and draft from all that they have answered before. Its name is that in tables,
    `decoder` that in the catalog; `parameters` are those that differ from their defaults. `shared` is used for each
    answer without anything learnt from texts.
    """

    def __init__(
        self,
        name: str,
        runner: Runner,
        decoder: str,
        parameters: Mapping[str, int],
        shared: Shared,
        device: torch.device,
        threads: Threads,
        warm: bool = False,
    ) -> None:
        self.name, self.threads = name, threads
        self._runner, self._decoder, self._parameters, self._shared = runner, decoder, parameters, shared
        self._policy: Policy | None = None
        self._warm = warm
        self._made: Decoder | None = None
        self._device, self._now = device, clock(device)

    def answer(self, prompt: list[int], limits: Limits, temperature: float = 0.0, seed: int = 0) -> TimedAnswer:
        """See `Method.answer`. With a temperature above 0 the answer is sampled, the same by every decoder."""
        self.threads.use()
        sampler = _sampler(prompt, temperature, seed, self._device) if temperature else None
        for _ in self._runner.prefill(prompt[:1]):  # a prompt of one token leaves nothing in the cache
            pass
        decoder = self._made = self._made if self._made and self._warm else self._fresh()
        steps: list[Step] = []
        first = ended = began = self._now()
        for step in decoder.run(prompt, limits, sampler):
            if not steps:
                first = self._now()
            steps.append(step)
            ended = time.perf_counter()  # its tokens are on the CPU, so there is nothing to wait for
        tested, accepted = _verdicts(steps)
        return TimedAnswer(
            tokens=tuple(token for step in steps for token in step.tokens),
            first_tokens=len(steps[0].tokens),
            passes=len(steps),
            slots=sum(step.slots for step in steps),
            first_seconds=first - began,
            rest_seconds=ended - first,
            tested=tested,
            accepted=accepted,
        )

    def _fresh(self) -> Decoder:
        """Return the decoder with new drafters and its policy. The first call may time passes, unmeasured."""
        decoder = registry.make(self._decoder, self._runner, self._shared.fresh())
        decoder.configure(self._parameters)
        self._policy = decoder.policy = self._policy or decoder.policy
        return decoder


class Transformers:
    """`model.generate` of transformers, with further options.

    Its first pass reads the prompt and emits tokens, so it counts as a step. The start of the second pass shows when
    the first step ended, and how many tokens it left in the cache.
    """

    def __init__(self, name: str, model: PreTrainedModel, **options: Any) -> None:
        self.name, self.threads = name, Threads(default_threads())
        self._model: Any = model
        self._options = options
        self._now = clock(self._model.device)

    def answer(self, prompt: list[int], limits: Limits, temperature: float = 0.0, seed: int = 0) -> TimedAnswer:
        """See `Method.answer`. With a temperature above 0 the answer is sampled."""
        self.threads.use()
        input_ids = torch.tensor([prompt], device=self._model.device)
        passes, slots, first, cached = 0, 1 - len(prompt), 0.0, 0

        def before_pass(_module: object, _arguments: object, options: dict[str, Any]) -> None:
            nonlocal passes, slots, first, cached
            passes += 1
            slots += options["input_ids"].shape[1]
            if passes == 2:
                first, cached = self._now(), _cached(options, len(prompt))

        with self._model.register_forward_pre_hook(before_pass, with_kwargs=True):
            began = self._now()
            tokens = self._generate(input_ids, limits, temperature, seed)
            ended = self._now()
        if passes == 1:
            first, cached = ended, len(prompt) + len(tokens) - 1
        return TimedAnswer(
            tokens=tokens,
            first_tokens=cached + 1 - len(prompt),
            passes=passes,
            slots=slots,
            first_seconds=first - began,
            rest_seconds=ended - first,
            tested=None,
        )

    def _generate(self, input_ids: torch.Tensor, limits: Limits, temperature: float, seed: int) -> tuple[int, ...]:
        """Return the tokens that `generate` appends, without the checkpoint's own penalties and sampling settings."""
        ends = sorted(limits.eos_ids)
        how: dict[str, Any] = {"do_sample": False}
        if temperature:
            how = {"do_sample": True, "temperature": temperature, "top_k": 0}
            torch.manual_seed(seed)
        own, self._model.generation_config = self._model.generation_config, GenerationConfig()
        try:
            output = self._model.generate(
                input_ids,
                attention_mask=torch.ones_like(input_ids),
                max_new_tokens=limits.max_new_tokens,
                eos_token_id=ends or None,
                pad_token_id=ends[0] if ends else 0,
                **how,
                **self._options,
            )
        finally:
            self._model.generation_config = own
        return tuple(output[0, input_ids.shape[1] :].tolist())


def _cached(options: dict[str, Any], prompt: int) -> int:
    """Return the cached tokens in the arguments of a second pass: the prompt's if the model has no KV cache."""
    cache = options.get(CACHE)
    length = getattr(cache, "get_seq_length", None)
    return prompt if length is None else int(length())


def _sampler(prompt: Sequence[int], temperature: float, seed: int, device: torch.device) -> Sampler:
    """Return what draws the tokens of an answer at a temperature."""
    how = Sampling([TemperatureLogitsWarper(temperature)], sample=True, generator=torch.Generator(device))
    return Sampler(prompt, how, seed)


def make_methods(
    loaded: LoadedModel,
    names: Sequence[str],
    settings: Sequence[Sequence[int]] = (),
    unmodified: PreTrainedModel | None = None,
    skipped: frozenset[int] | None = None,
) -> list[Method]:
    """Return all methods with these names; the decoder whose parameters are set by hand once for each of `settings`.

    See `method_names` and `numbers_by_hand` in `ladechat.bench.options`. `unmodified` is the model as transformers
    makes it, if the loaded one computes with our kernels.

    Raises:
        BenchRefused: a method that drafts, with a model that takes one token a pass or lacks what the method needs.
    """
    drafting = [name for name in names if (DECODERS[name].tree_attention if name in DECODERS else TRANSFORMERS[name])]
    if drafting and not loaded.runner.capabilities.tree_attention:
        raise BenchRefused(f"{loaded.runner.capabilities.single_token} Give --decoders without {', '.join(drafting)}.")
    for name in names:
        if (why := why_unusable(name, loaded)) is not None:
            raise BenchRefused(f"{name} cannot be measured: {why}")
    shared, found = Shared(PassCosts(loaded.runner), trained=loaded.maps.by_kind, skipped=skipped), list[Method]()
    for name in names:
        if name in TRANSFORMERS:
            found.append(Transformers(name, unmodified or loaded.model, **TRANSFORMERS[name]))
            continue
        for shown, parameters in _settings_of(name, settings):
            device, threads = loaded.runner.device, loaded.threads
            found.append(Ours(shown, loaded.runner, name, parameters, shared, device, threads))
    return found


def why_unusable(name: str, loaded: LoadedModel) -> str | None:
    """Return why a model that verifies trees does not support a method, in a sentence; None if it does."""
    if name in TRANSFORMERS and loaded.model is None:
        return "transformers has no model of it: llama.cpp computes this GGUF file."
    if name in TRANSFORMERS and loaded.model.tp_size is not None:
        return "transformers would run it in one process, and several share it."
    if name not in DECODERS or not loaded.runner.capabilities.tree_attention:
        return None
    return registry.why_unusable(DECODERS[name], loaded.runner, loaded.maps.by_kind, loaded.maps.missing)


def uses_kernels(model: PreTrainedModel) -> bool:
    """Return whether a model computes with our CPU kernels: then its `generate` is no longer transformers alone."""
    return any(isinstance(module, PackedLinear) for module in model.modules())


def _settings_of(name: str, settings: Sequence[Sequence[int]]) -> list[tuple[str, dict[str, int]]]:
    """Return the name in tables and the parameters of a decoder, for each time that it is measured."""
    if name != by_hand().name:
        return [(name, {})]
    wanted = numbers_by_hand()
    return [
        (f"{name} {','.join(map(str, values))}", dict(zip((one.name for one in wanted), values, strict=True)))
        for values in settings or [tuple(int(one.default) for one in wanted)]
    ]


def clock(device: torch.device) -> Callable[[], float]:
    """Return a function that returns the time in seconds, after waiting for the device to finish its work."""
    waits: dict[str, Callable[[], None]] = {
        "cuda": partial(torch.cuda.synchronize, device),
        "mps": torch.mps.synchronize,
    }
    wait = waits.get(device.type)

    def now() -> float:
        if wait is not None:
            wait()
        return time.perf_counter()

    return now


def _verdicts(steps: Sequence[Step]) -> tuple[Counter[str], Counter[str]]:
    """Return, by source, how many drafted tokens were tested, and how many were accepted."""
    tested: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for draft in (step.draft for step in steps if step.draft is not None):
        for source, verdict in zip(draft.sources, draft.verdicts, strict=True):
            tested[source] += verdict != "untested"
            accepted[source] += verdict == "accepted"
    return tested, accepted
