"""What takes part: the decoders of ladechat, and transformers' own `generate`, each as one call that is measured."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch
from transformers import GenerationConfig, PreTrainedModel

from ladechat import registry
from ladechat.bench.options import TRANSFORMERS, Refused, by_hand, numbers_by_hand
from ladechat.catalog import DECODERS
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.loop import Decoder
from ladechat.decoder.policy import Policy
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits, Step
from ladechat.model.kernels.swap import PackedLinear
from ladechat.model.load import LoadedModel
from ladechat.model.loading.threads import Threads, default_threads
from ladechat.model.runners.cache_argument import CACHE
from ladechat.registry import Shared
from ladechat.tuning.costs import PassCosts


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, and what it took.

    Attributes:
        first_tokens: how many of the tokens came with the first step.
        passes: forward passes that emitted tokens; those that only read the prompt do not count.
        slots: of these passes together; those of the prompt's tokens but the last do not count.
        first_seconds: from the prompt, with nothing cached, to the end of the first step.
        rest_seconds: from there to the last token; of transformers, until `generate` returns.
        tested: drafted tokens that the model judged, by their source; None where that is not known.
        accepted: those of them that it confirmed.
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
    """Something that answers."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    @property
    def threads(self) -> Threads:
        """That it computes with on a CPU."""
        ...

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """Read the prompt, beginning with an empty cache, and answer it."""
        ...


class Ours:
    """A decoder of ladechat.

    Its drafters are made anew for every answer: they know nothing of other prompts, other methods, or of what they
    themselves answered in the round before. Its policy stays, and with it what it has learnt of acceptance rates and of
    the costs of passes, as in the app.

    Args:
        name: what it is called in tables.
        runner: the model.
        decoder: its name in the catalog.
        parameters: those that are not to have their defaults.
        shared: what the model's decoders have in common, but for their pool, which is new for each answer.
        device: where the model is.
        threads: see `Method.threads`.
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
    ) -> None:
        self.name, self.threads = name, threads
        self._runner, self._decoder, self._parameters, self._shared = runner, decoder, parameters, shared
        self._policy: Policy | None = None
        self._now = clock(device)

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Method.answer`."""
        self.threads.use()
        for _ in self._runner.prefill(prompt[:1]):  # a prompt of one token leaves nothing in the cache
            pass
        decoder = self._fresh()
        steps: list[Step] = []
        first = ended = began = self._now()
        for step in decoder.run(prompt, limits):
            if not steps:
                first = self._now()
            steps.append(step)
            ended = time.perf_counter()  # its tokens have been read, so that there is nothing to wait for
        tested, accepted = _verdicts(steps)
        return Answer(
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
        """The decoder with new drafters and its policy. The first one may time passes, which is not measured."""
        decoder = registry.make(self._decoder, self._runner, replace(self._shared, pool=NGramPool()))
        decoder.configure(self._parameters)
        self._policy = decoder.policy = self._policy or decoder.policy
        return decoder


class Transformers:
    """Greedy `model.generate` of transformers, with further options of it.

    Its first pass reads the prompt and emits tokens too, so it counts as a step. The beginning of the second pass
    shows when the first step was over, and how many tokens that one left in the cache.
    """

    def __init__(self, name: str, model: PreTrainedModel, **options: Any) -> None:
        self.name, self.threads = name, Threads(default_threads())
        self._model: Any = model
        self._options = options
        self._now = clock(self._model.device)

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Method.answer`."""
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
            tokens = self._generate(input_ids, limits)
            ended = self._now()
        if passes == 1:
            first, cached = ended, len(prompt) + len(tokens) - 1
        return Answer(
            tokens=tokens,
            first_tokens=cached + 1 - len(prompt),
            passes=passes,
            slots=slots,
            first_seconds=first - began,
            rest_seconds=ended - first,
            tested=None,
        )

    def _generate(self, input_ids: torch.Tensor, limits: Limits) -> tuple[int, ...]:
        """What `generate` appends. A checkpoint's own generation settings (penalties, sampling) stay out of it."""
        ends = sorted(limits.eos_ids)
        own, self._model.generation_config = self._model.generation_config, GenerationConfig()
        try:
            output = self._model.generate(
                input_ids,
                attention_mask=torch.ones_like(input_ids),
                do_sample=False,
                max_new_tokens=limits.max_new_tokens,
                eos_token_id=ends or None,
                pad_token_id=ends[0] if ends else 0,
                **self._options,
            )
        finally:
            self._model.generation_config = own
        return tuple(output[0, input_ids.shape[1] :].tolist())


def _cached(options: dict[str, Any], prompt: int) -> int:
    """How many tokens the arguments of a second pass hold: the prompt alone where a model has no KV cache."""
    cache = options.get(CACHE)
    length = getattr(cache, "get_seq_length", None)
    return prompt if length is None else int(length())


def make_methods(
    loaded: LoadedModel,
    names: Sequence[str],
    settings: Sequence[Sequence[int]] = (),
    unmodified: PreTrainedModel | None = None,
    skipped: frozenset[int] | None = None,
) -> list[Method]:
    """All that take part under these names: the decoder that is set by hand once for each of its settings.

    Args:
        loaded: the model.
        names: some of `ladechat.bench.options.method_names`.
        settings: values of `ladechat.bench.options.numbers_by_hand`; none: its defaults.
        unmodified: the model as transformers makes it, where the loaded one computes with our kernels.
        skipped: the layers that layer skipping leaves out; None is its default set.

    Raises:
        Refused: a method that drafts, and a model that takes one token a pass, or lacks what the method needs.
    """
    drafting = [name for name in names if (DECODERS[name].tree_attention if name in DECODERS else TRANSFORMERS[name])]
    if drafting and not loaded.runner.capabilities.tree_attention:
        raise Refused(f"{loaded.runner.capabilities.single_token} Give --decoders without {', '.join(drafting)}.")
    for name in names:
        if (why := why_unusable(name, loaded)) is not None:
            raise Refused(f"{name} cannot be measured: {why}")
    shared, found = Shared(PassCosts(loaded.runner), trained=loaded.maps.by_kind, skipped=skipped), list[Method]()
    for name in names:
        if name in TRANSFORMERS:
            found.append(Transformers(name, unmodified or loaded.model, **TRANSFORMERS[name]))
            continue
        for shown, parameters in _settings_of(name, settings):
            device, threads = loaded.model.device, loaded.threads
            found.append(Ours(shown, loaded.runner, name, parameters, shared, device, threads))
    return found


def why_unusable(name: str, loaded: LoadedModel) -> str | None:
    """Why a method that drafts cannot be measured on a model that takes trees, in a sentence; None where it can."""
    if name not in DECODERS or not loaded.runner.capabilities.tree_attention:
        return None
    return registry.why_unusable(DECODERS[name], loaded.runner, loaded.maps.by_kind, loaded.maps.missing)


def uses_kernels(model: PreTrainedModel) -> bool:
    """Whether a model computes with our CPU kernels: then its `generate` is no longer transformers alone."""
    return any(isinstance(module, PackedLinear) for module in model.modules())


def _settings_of(name: str, settings: Sequence[Sequence[int]]) -> list[tuple[str, dict[str, int]]]:
    """What a decoder is called and set to, each time that it takes part."""
    if name != by_hand().name:
        return [(name, {})]
    wanted = numbers_by_hand()
    return [
        (f"{name} {','.join(map(str, values))}", dict(zip((one.name for one in wanted), values, strict=True)))
        for values in settings or [tuple(int(one.default) for one in wanted)]
    ]


def clock(device: torch.device) -> Callable[[], float]:
    """Seconds, read when the device has done all that it was given so far."""
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
    """By source, how many drafted tokens were tested, and how many of them accepted."""
    tested: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for draft in (step.draft for step in steps if step.draft is not None):
        for source, verdict in zip(draft.sources, draft.verdicts, strict=True):
            tested[source] += verdict != "untested"
            accepted[source] += verdict == "accepted"
    return tested, accepted
