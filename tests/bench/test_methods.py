"""What takes part answers as plain decoding does, and says truly what that took."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.generation.streamers import BaseStreamer

from ladechat import registry
from ladechat.bench.methods import Ours, TimedAnswer, Transformers, make_methods
from ladechat.bench.options import BenchRefused, method_names
from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import Sampler
from ladechat.decoder.step import Draft, Limits, Step
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.device import Threads
from ladechat.registry import Shared
from ladechat.tuning.adaptive import AdaptivePolicy
from ladechat.tuning.costs import PassCosts
from tests.checkpoints import load_on_cpu, save_recurrent

SETTINGS = ((3, 3, 3), (5, 4, 2))
LIMITS = Limits(24)


@pytest.fixture
def prompt(loaded: LoadedModel) -> list[int]:
    """Some text and what the model goes on with, so that there is something to look up in it."""
    start = list(loaded.tokenizer.encode("the pool keeps the n-grams of the pool, the window"))
    steps = Decoder(loaded.runner).run(start, Limits(60))
    return start + [token for step in steps for token in step.tokens]


def test_lookahead_takes_part_once_for_each_of_its_settings(loaded: LoadedModel) -> None:
    names = [method.name for method in make_methods(loaded, method_names(), SETTINGS)]
    assert len(names) == len(set(names)) == len(method_names()) + 1
    assert {"lookahead 3,3,3", "lookahead 5,4,2"} <= set(names)


def test_every_method_answers_as_plain_decoding_does_also_to_the_end_of_the_text(
    loaded: LoadedModel, prompt: list[int]
) -> None:
    plain, *others = make_methods(loaded, method_names(), SETTINGS)
    expected = plain.answer(prompt, LIMITS).tokens
    assert len(expected) == LIMITS.max_new_tokens
    early = Limits(LIMITS.max_new_tokens, frozenset([expected[9]]))
    until = expected[: expected.index(expected[9]) + 1]
    for method in others:
        assert method.answer(prompt, LIMITS).tokens == expected, method.name
        assert method.answer(prompt, early).tokens == until, method.name


def test_a_sampled_answer_is_the_same_by_every_decoder_and_another_for_another_seed(
    loaded: LoadedModel, prompt: list[int]
) -> None:
    plain, *others = [one for one in make_methods(loaded, method_names(), SETTINGS) if isinstance(one, Ours)]
    expected, again = (plain.answer(prompt, LIMITS, 1.5, seed).tokens for seed in (1, 2))
    assert expected != again and plain.answer(prompt, LIMITS).tokens not in (expected, again)
    for method in others:
        assert method.answer(prompt, LIMITS, 1.5, 1).tokens == expected, method.name


def test_generate_samples_at_a_temperature(loaded: LoadedModel, prompt: list[int]) -> None:
    method = Transformers("transformers", loaded.model)
    found = [method.answer(prompt, LIMITS, 1.5, seed).tokens for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert method.answer(prompt, LIMITS).tokens == method.answer(prompt, LIMITS).tokens


def test_plain_decoding_of_both_kinds_takes_one_pass_a_token(loaded: LoadedModel, prompt: list[int]) -> None:
    for method in make_methods(loaded, ("autoregressive", "transformers"), SETTINGS):
        answer = method.answer(prompt, LIMITS)
        assert answer.passes == answer.slots == len(answer.tokens) and answer.first_tokens == 1


@pytest.fixture
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads_as_before")
def test_each_method_computes_with_its_own_threads_whoever_answered_before(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.bench.methods.default_threads", lambda: 3)
    methods = make_methods(replace(loaded, threads=Threads(1, 2)), ("autoregressive", "transformers", "suffix"))
    computed_with: dict[str, set[int]] = {}
    for method in (*methods, *reversed(methods)):
        method.answer([1, 2, 3], Limits(2))
        computed_with.setdefault(method.name, set()).add(torch.get_num_threads())
    assert computed_with == {"autoregressive": {1}, "transformers": {3}, "suffix": {1}}
    assert [method.threads.torch for method in methods] == [1, 3, 1]


class Chunks(BaseStreamer):
    """How many tokens `generate` brings at a time: the prompt, then one lot for each step."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def put(self, value: torch.Tensor) -> None:
        self.sizes.append(value.numel())

    def end(self) -> None:
        pass


def test_the_passes_of_transformers_are_the_lots_in_which_its_tokens_come(
    loaded: LoadedModel, prompt: list[int]
) -> None:
    chunks = Chunks()
    answer = Transformers("lookup", loaded.model, prompt_lookup_num_tokens=10, streamer=chunks).answer(prompt, LIMITS)
    read, *lots = chunks.sizes
    assert read == len(prompt) and sum(lots) == len(answer.tokens) > len(lots)
    assert answer.passes == len(lots) and answer.first_tokens == lots[0] > 1


def test_an_answer_of_one_step_has_all_its_tokens_in_the_first(loaded: LoadedModel, prompt: list[int]) -> None:
    for method in make_methods(loaded, method_names(), SETTINGS):
        answer = method.answer(prompt, Limits(1))
        assert (answer.passes, answer.first_tokens, len(answer.tokens)) == (1, 1, 1)


def test_a_checkpoints_own_generation_settings_have_no_say_and_stay(loaded: LoadedModel, prompt: list[int]) -> None:
    model: Any = loaded.model
    own = model.generation_config
    method = Transformers("transformers", loaded.model)
    expected = method.answer(prompt, LIMITS).tokens
    own.repetition_penalty = 50.0
    try:
        assert method.answer(prompt, LIMITS).tokens == expected
        assert model.generation_config is own
    finally:
        own.repetition_penalty = None


def test_every_answer_begins_with_an_empty_cache(loaded: LoadedModel, prompt: list[int]) -> None:
    read: list[int] = []

    def note(_module: object, _arguments: object, options: dict[str, Any]) -> None:
        read.append(options["input_ids"].shape[1])

    for method in make_methods(loaded, method_names(), SETTINGS):
        method.answer(prompt, Limits(2))
        read.clear()
        with loaded.model.register_forward_pre_hook(note, with_kwargs=True):
            method.answer(prompt, Limits(2))
        assert read[0] >= len(prompt) - 1, method.name


def test_nothing_of_an_answer_helps_with_the_same_one_again(loaded: LoadedModel, prompt: list[int]) -> None:
    fixed = [name for name in registry.DECODERS if name != "auto"]  # that learns rates, and so may draft otherwise
    for method in make_methods(loaded, fixed, SETTINGS):
        first, again = (method.answer(prompt, LIMITS) for _ in range(2))
        assert (first.passes, first.slots, first.tested) == (again.passes, again.slots, again.tested), method.name


def test_auto_goes_on_with_the_rates_and_costs_that_it_has_learnt(
    loaded: LoadedModel, prompt: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    policies: list[object] = []
    run = Decoder.run

    def note(self: Decoder, *given: Any) -> Iterator[Step]:
        policies.append(self.policy)
        return run(self, *given)

    monkeypatch.setattr(Decoder, "run", note)
    [method] = make_methods(loaded, ["auto"])
    for _ in range(2):
        method.answer(prompt, LIMITS)
    assert policies[0] is policies[1] and isinstance(policies[0], AdaptivePolicy)


class Made:
    """Stands in for a decoder; a benchmark sets its parameters and its policy."""

    policy: object = None

    def configure(self, parameters: dict[str, int]) -> None:
        pass


class Drafting(Made):
    """A decoder of two steps with known verdicts."""

    def run(
        self, prompt: Sequence[int], limits: Limits, sampler: Sampler | None = None, generated: int = 0
    ) -> Iterator[Step]:
        path = (0,)  # so that the others were rejected, rejected and never judged
        draft = Draft((7, 8, 9, 10), (-1, 0, -1, 2), ("window", "window", "prompt", "prompt"), path)
        for tokens in ((7, 4), (5,)):
            yield Step(tokens, (0.0,) * len(tokens), ("model",) * len(tokens), 5, 3, 0.1, draft)


def answer_of(made: Made, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> TimedAnswer:
    monkeypatch.setitem(registry.DECODERS, "made up", lambda runner, shared: made)
    together = Shared(PassCosts(loaded.runner))
    ours = Ours("made up", loaded.runner, "made up", {}, together, loaded.model.device, loaded.threads)
    return ours.answer([1, 2, 3], LIMITS)


def test_drafts_are_counted_by_source_and_those_never_judged_are_left_out(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_of(Drafting(), loaded, monkeypatch)
    assert answer.tokens == (7, 4, 5) and answer.passes == 2 and answer.slots == 10 and answer.first_tokens == 2
    assert answer.tested is not None and dict(answer.tested) == {"window": 4, "prompt": 2}
    assert {source: answer.accepted[source] for source in answer.tested} == {"window": 2, "prompt": 0}


@pytest.mark.parametrize("warm", [True, False])
def test_a_warm_method_goes_on_with_the_drafters_that_it_has(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, warm: bool
) -> None:
    made: list[Drafting] = []

    def make(*_: object) -> Drafting:
        made.append(Drafting())
        return made[-1]

    monkeypatch.setitem(registry.DECODERS, "made up", make)
    together = Shared(PassCosts(loaded.runner))
    ours = Ours("made up", loaded.runner, "made up", {}, together, loaded.model.device, loaded.threads, warm=warm)
    assert ours.answer([1, 2, 3], LIMITS).tokens == ours.answer([1, 2, 3], LIMITS).tokens
    assert len(made) == (1 if warm else 2)


class Busy(Made):
    """A decoder that is given a clock, works between its two steps and goes on working behind the last."""

    def __init__(self) -> None:
        self.now = 0.0

    def run(
        self, prompt: Sequence[int], limits: Limits, sampler: Sampler | None = None, generated: int = 0
    ) -> Iterator[Step]:
        for token, seconds in ((7, 2.0), (8, 3.0)):
            self.now += seconds
            yield Step((token,), (0.0,), ("model",), 1, 3, seconds)
            self.now += 4.0


def test_an_answer_is_timed_until_its_last_token_is_there(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    monkeypatch.setattr(time, "perf_counter", lambda: busy.now)
    answer = answer_of(busy, loaded, monkeypatch)
    assert (answer.first_seconds, answer.rest_seconds) == (2.0, 4.0 + 3.0)


def test_a_model_that_takes_one_token_a_pass_can_be_measured_against_transformers_and_drafters_are_refused(
    tmp_path: Path, prompt: list[int]
) -> None:
    single_token = load_on_cpu(save_recurrent(tmp_path))
    methods = make_methods(single_token, ("autoregressive", "transformers"), SETTINGS)
    ours, theirs = (method.answer([5, 8, 13], Limits(6)) for method in methods)
    assert ours.tokens == theirs.tokens
    with pytest.raises(BenchRefused, match=r"one token a pass.*without jacobi, transformers-prompt-lookup"):
        make_methods(single_token, ("autoregressive", "jacobi", "transformers-prompt-lookup"), SETTINGS)
