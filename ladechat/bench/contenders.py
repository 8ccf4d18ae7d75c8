"""What takes part: the decoders of ladechat, and transformers' own `generate`, each as one call that is measured."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from transformers import GenerationConfig

from ladechat.bench.options import Refused
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.jacobi_only import JacobiDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.prompt_lookup import PromptLookupDecoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Decoder, Limits, Step
from ladechat.decoder.tuned import TunedDecoder
from ladechat.decoder.tuner import Tuner
from ladechat.model.cost import PassCosts
from ladechat.model.loading import LoadedModel

LOOKED_UP_TOKENS = 10
"""How many tokens transformers' prompt lookup drafts at once."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, and what it took.

    Attributes:
        first_tokens: how many of the tokens came with the first step.
        passes: forward passes that emitted tokens; those that only read the prompt do not count.
        first_seconds: from the prompt, with nothing cached, to the end of the first step.
        rest_seconds: from there to the last token; of transformers, until `generate` returns.
        tested: drafted tokens that the model judged, by their source; None where that is not known.
        accepted: those of them that it confirmed.
    """

    tokens: tuple[int, ...]
    first_tokens: int
    passes: int
    first_seconds: float
    rest_seconds: float
    tested: Mapping[str, int] | None = field(default_factory=dict)
    accepted: Mapping[str, int] = field(default_factory=dict)


class Contender(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """Read the prompt, beginning with an empty cache, and answer it."""
        ...


class Ours:
    """A decoder of ladechat, made anew for every answer. It knows of the answers before what `make` gives it."""

    def __init__(self, name: str, loaded: LoadedModel, make: Callable[[Runner], Decoder]) -> None:
        self.name = name
        self._runner = loaded.runner
        self._make = make
        self._now = clock(loaded.runner.model.device)

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Contender.answer`."""
        for _ in self._runner.prefill(prompt[:1]):  # a prompt of one token leaves nothing in the cache
            pass
        steps: list[Step] = []
        first = ended = began = self._now()
        for step in self._make(self._runner).run(prompt, limits):
            if not steps:
                first = self._now()
            steps.append(step)
            ended = time.perf_counter()  # its tokens have been read, so that there is nothing to wait for
        tested, accepted = _verdicts(steps)
        return Answer(
            tokens=tuple(token for step in steps for token in step.tokens),
            first_tokens=len(steps[0].tokens),
            passes=len(steps),
            first_seconds=first - began,
            rest_seconds=ended - first,
            tested=tested,
            accepted=accepted,
        )


class Transformers:
    """Greedy `model.generate` of transformers, with further options of it.

    Its first pass reads the prompt and emits tokens too, so it counts as a step. It is told by the second pass when the
    first step was over, and how many tokens that one left in the cache.
    """

    def __init__(self, name: str, loaded: LoadedModel, **options: Any) -> None:
        self.name = name
        self._model: Any = loaded.runner.model
        self._options = options
        self._now = clock(self._model.device)

    def answer(self, prompt: list[int], limits: Limits) -> Answer:
        """See `Contender.answer`."""
        input_ids = torch.tensor([prompt], device=self._model.device)
        passes, first, cached = 0, 0.0, 0

        def before_pass(_module: object, _arguments: object, options: dict[str, Any]) -> None:
            nonlocal passes, first, cached
            passes += 1
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
    cache = options.get("past_key_values")
    length = getattr(cache, "get_seq_length", None)
    return prompt if length is None else int(length())


Settings = Sequence[tuple[int, int, int]]
Make = Callable[[LoadedModel, Settings], list[Contender]]

MAKERS: dict[str, Make] = {
    "autoregressive": lambda loaded, _: [Ours("autoregressive", loaded, AutoregressiveDecoder)],
    "lookahead": lambda loaded, settings: [_lookahead(loaded, *each) for each in settings],
    "auto": lambda loaded, _: [_auto(loaded)],
    "jacobi": lambda loaded, _: [Ours("jacobi", loaded, JacobiDecoder)],
    "prompt_lookup": lambda loaded, _: [Ours("prompt lookup", loaded, PromptLookupDecoder)],
    "transformers": lambda loaded, _: [Transformers("transformers", loaded)],
    "transformers-prompt-lookup": lambda loaded, _: [
        Transformers("transformers prompt-lookup", loaded, prompt_lookup_num_tokens=LOOKED_UP_TOKENS)
    ],
}
"""How each of `ladechat.bench.options.CONTENDERS` is made."""

DRAFTING = ("lookahead", "auto", "jacobi", "prompt_lookup", "transformers-prompt-lookup")
"""Those that verify several tokens in a pass, which not every model can."""


def make_contenders(loaded: LoadedModel, decoders: Sequence[str], settings: Settings) -> list[Contender]:
    """All that take part under these names: lookahead once for each of its settings (W, N, G).

    Raises:
        Refused: a decoder that drafts, and a model that can only be decoded plainly.
    """
    drafting = [name for name in decoders if name in DRAFTING]
    if loaded.plain_only is not None and drafting:
        raise Refused(f"{loaded.plain_only} Give --decoders without {', '.join(drafting)}.")
    return [contender for name in decoders for contender in MAKERS[name](loaded, settings)]


def check_windows(settings: Settings, longest_prompt: int, context_length: int) -> None:
    """Refuse settings whose window would never lie within the context: such a run would not show what they can do.

    Raises:
        Refused: W + N reach too far ahead of the longest prompt.
    """
    for window, ngram, guesses in settings:
        ahead = window + ngram - 3
        if longest_prompt + ahead > context_length:
            raise Refused(
                f"W {window}, N {ngram}, G {guesses} looks {ahead} positions ahead, and behind the longest prompt of "
                f"{longest_prompt:,} tokens the context of {context_length:,} has fewer; give --settings with a "
                "smaller W or N."
            )


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


def _lookahead(loaded: LoadedModel, window: int, ngram: int, guesses: int) -> Contender:
    settings = LookaheadSettings(window, ngram, guesses)
    return Ours(f"lookahead {window},{ngram},{guesses}", loaded, lambda runner: LookaheadDecoder(runner, settings))


def _auto(loaded: LoadedModel) -> Contender:
    """Its pool is new for every answer; what passes cost and settings yield it learns on the way."""
    costs = PassCosts(loaded.runner)
    tuner = Tuner(costs, lambda: costs.lost)
    return Ours("lookahead auto", loaded, lambda runner: TunedDecoder(LookaheadDecoder(runner), costs, tuner))


def _verdicts(steps: Sequence[Step]) -> tuple[Counter[str], Counter[str]]:
    """By source, how many drafted tokens were tested, and how many of them accepted."""
    tested: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for draft in (step.draft for step in steps if step.draft is not None):
        for source, verdict in zip(draft.sources, draft.verdicts, strict=True):
            tested[source] += verdict != "untested"
            accepted[source] += verdict == "accepted"
    return tested, accepted
