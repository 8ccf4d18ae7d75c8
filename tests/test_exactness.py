"""Every decoder of the registry writes what plain decoding writes: greedily, sampled, stopped, switched, to the end."""

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    PreTrainedModel,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ladechat import catalog, registry
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import Processor, Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.model.runners.tree import TreeRunner
from ladechat.protocol import Value
from tests.made_up_costs import dear, drawn, free, moderate, shared
from tests.made_up_maps import made_up_for
from tests.tiny import (
    VOCABULARY,
    accepted,
    generated,
    layered_runner_for as runner_for,
    plain,
    random_model as any_model,
    run,
    tokens_of,
)

PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]
WITH_WINDOW = "auto with its window"
ALL = [*registry.DECODERS, WITH_WINDOW]
DRAFTING = [name for name in ALL if name != "autoregressive"]

decoders = pytest.mark.parametrize("name", ALL)
drafting = pytest.mark.parametrize("name", DRAFTING)


def random_model(seed: int, **changes: Any) -> PreTrainedModel:
    """One of two layers, the fewest of which one can be skipped: thousands of passes go through them."""
    return any_model(seed, num_hidden_layers=2, **changes)


def make(name: str, runner: TreeRunner, seed: int = 0, pool: NGramPool | None = None) -> Decoder:
    """A decoder; what passes cost `auto` and what was trained is made up, by the seed, so that choices vary."""
    curve = (drawn(seed), free, moderate, dear)[seed % 4]
    if name == WITH_WINDOW:
        return registry.make("auto", runner, shared(drawn(seed), window=True, pool=pool))
    return registry.make(name, runner, shared(curve, pool=pool, trained=made_up_for(runner, seed)))


def random_parameters(name: str, dice: random.Random) -> dict[str, Value]:
    """Any values in the range of each parameter, small ones more often."""
    info = catalog.DECODERS[name if name != WITH_WINDOW else "auto"]
    return {
        one.name: dice.random() < 0.5
        if isinstance(one.default, bool)
        else dice.randint(one.least, min(one.most, one.least + dice.choice([1, 5, 15, 63])))
        for one in info.parameters
    }


@dataclass(frozen=True)
class Case:
    """What is to be written, and what plain decoding makes of it."""

    model: PreTrainedModel
    prompt: list[int]
    limit: int
    eos: frozenset[int]
    expected: list[int]


@cache
def greedy_case(seed: int) -> Case:
    """A random model, prompt, limit and end-of-text ids. Half of the prompts hold parts of the text to come."""
    dice = random.Random(seed)
    model = random_model(dice.randrange(6), num_key_value_heads=dice.choice([1, 2, 4]))
    prompt = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 30))]
    if dice.random() < 0.5:
        prompt = [*prompt, *plain(model, prompt, 20), *prompt[-12:]]
    limit = dice.randint(1, 50)
    eos = [dice.randrange(VOCABULARY) for _ in range(dice.randint(0, 3))]
    return Case(model, prompt, limit, frozenset(eos), plain(model, prompt, limit, eos))


def written(
    name: str, case: Case, runner: TreeRunner, dice: random.Random, sampler: Sampler | None = None
) -> list[Step]:
    """What a decoder writes; its parameters change mid-way in half of the cases, and so does the decoder in some.

    Those that follow each other share a pool, as the decoders of an engine do. The first one of a sampled text has seen
    that text already, in an answer before it, so that draws meet drafts.
    """
    pool = NGramPool()
    decoder = make(name, runner, dice.randrange(99), pool)
    decoder.configure(random_parameters(name, dice))
    if sampler is not None:
        forced = Sampler(case.prompt, Sampling([Forced(len(case.prompt), case.expected)]))
        assert tokens_of(list(decoder.run(case.prompt, Limits(len(case.expected)), forced))) == case.expected
    changing, switching = dice.random() < 0.5, dice.random() < 0.3
    steps: list[Step] = []
    text = list(case.prompt)
    while not ended(case, steps):
        left = Limits(case.limit - len(tokens_of(steps)), case.eos)
        for step in decoder.run(text, left, sampler, generated=len(text) - len(case.prompt)):
            steps.append(step)
            text += step.tokens
            assert not decoder.drafters or follows_its_drafts(step, last=ended(case, steps))
            if changing and dice.random() < 0.3:
                decoder.configure(random_parameters(name, dice))
            if switching and dice.random() < 0.2:
                name = dice.choice(ALL)
                decoder = make(name, runner, dice.randrange(99), pool)
                decoder.configure(random_parameters(name, dice))
                break
    return steps


def ended(case: Case, steps: Sequence[Step]) -> bool:
    tokens = tokens_of(steps)
    return len(tokens) >= case.limit or bool(tokens and tokens[-1] in case.eos)


def follows_its_drafts(step: Step, *, last: bool) -> bool:
    """Whether a token that a draft foresaw is followed: a step ends where the drafts do, or the text."""
    assert step.draft is not None
    edges = zip(step.draft.parents, step.draft.tokens, strict=True)
    children = {edge: node for node, edge in enumerate(edges)}
    node: int | None = -1
    for token in step.tokens:
        if node is None:
            return False
        node = children.get((node, token))
    return node is None or last


def check_a_greedy_case(name: str, seed: int) -> int:
    """How many drafted tokens were accepted."""
    case, dice = greedy_case(seed), random.Random(f"{name} {seed}")
    steps = written(name, case, runner_for(case.model, chunk=dice.randint(1, 40)), dice)
    assert tokens_of(steps) == case.expected, f"seed {seed}"
    return accepted(steps)


MANY_MORE = [pytest.param(range(first, first + 20), marks=pytest.mark.full) for first in range(100, 400, 20)]


@decoders
@pytest.mark.parametrize("seeds", [range(8), range(8, 16), range(16, 24), *MANY_MORE])
def test_greedy_output_equals_plain_decoding(name: str, seeds: range) -> None:
    drafts = sum(check_a_greedy_case(name, seed) for seed in seeds)
    assert drafts or name == "autoregressive"


def test_plain_decoding_equals_generate() -> None:
    model = random_model(3)
    assert plain(model, PROMPT, 40) == generated(model, PROMPT, 40)


@drafting
def test_float64_output_equals_plain_decoding(name: str) -> None:
    model = random_model(7, hidden_size=24).double()
    prompt = [*PROMPT, *plain(model, PROMPT, 20), *PROMPT]
    assert tokens_of(run(make(name, runner_for(model)), prompt, 40)) == plain(model, prompt, 40)


@decoders
@pytest.mark.parametrize("context", [9, 48])
def test_a_run_fills_the_context_to_its_end_and_no_slot_lies_beyond(name: str, context: int) -> None:
    model = random_model(2)
    steps = run(make(name, runner_for(model, context_length=context)), PROMPT, 1000)  # a slot beyond is an error
    assert tokens_of(steps) == plain(model, PROMPT, context - len(PROMPT))


@decoders
def test_a_stopped_run_leaves_a_cache_that_the_next_one_goes_on_from(name: str) -> None:
    model = random_model(4)
    runner = runner_for(model)
    prompt = [*PROMPT, *plain(model, PROMPT, 20), *PROMPT]
    steps = make(name, runner).run(prompt, Limits(60))
    written = [token for _ in range(6) for token in next(steps).tokens]
    assert isinstance(steps, Generator)
    steps.close()
    assert list(runner.tokens) == prompt + written[:-1]
    continued = tokens_of(run(make(name, runner, 1), prompt + written, 20))
    assert written + continued == plain(model, prompt, len(written) + 20)


@decoders
def test_log_probabilities_are_those_of_a_plain_pass(name: str) -> None:
    model = random_model(5)
    prompt = [*PROMPT, *plain(model, PROMPT, 20), *PROMPT]
    steps = run(make(name, runner_for(model)), prompt, 30)
    text = prompt + tokens_of(steps)
    with torch.inference_mode():
        expected = model(torch.tensor([text])).logits[0].log_softmax(-1)
    places = range(len(prompt) - 1, len(text) - 1)
    reported = [value for step in steps for value in step.logprobs]
    assert reported == pytest.approx([float(expected[i, text[i + 1]]) for i in places], abs=1e-4)


@decoders
def test_a_second_answer_is_exact_with_all_that_the_first_one_taught(name: str) -> None:
    model = random_model(1)
    decoder = make(name, runner_for(model))
    text = list(PROMPT)
    for turn in range(3):
        text += [40 + turn, *PROMPT]
        written = tokens_of(run(decoder, text, 24))
        assert written == plain(model, text, 24)
        text += written


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@decoders
def test_no_more_tokens_than_asked_for(name: str, limit: int) -> None:
    model = random_model(1)
    prompt = [*PROMPT, *plain(model, PROMPT, 20), *PROMPT]
    assert tokens_of(run(make(name, runner_for(model)), prompt, limit)) == plain(model, prompt, limit)


@decoders
def test_an_end_of_text_inside_a_draft_ends_the_run(name: str) -> None:
    model = random_model(1)
    prompt = [*PROMPT, *plain(model, PROMPT, 20), *PROMPT]
    answer = plain(model, prompt, 12)
    for place in range(8):
        ends = [answer[place], 96]
        steps = run(make(name, runner_for(model)), prompt, 12, ends)
        assert tokens_of(steps) == answer[: answer.index(answer[place]) + 1]


# --- sampling --------------------------------------------------------------------------------------------------------


def random_options(dice: random.Random) -> dict[str, float | int]:
    """Sampling options of `generate`."""
    others = {"top_p": 0.8, "min_p": 0.1, "repetition_penalty": 1.3, "no_repeat_ngram_size": 3}
    return {
        "temperature": dice.choice([0.5, 0.8, 1.3]),
        "top_k": dice.choice([0, 3, 20]),
        **{name: value for name, value in others.items() if dice.random() < 0.4},
    }


def processors_for(options: dict[str, float | int]) -> list[Processor]:
    """The processors that `generate` makes of its options, in its order."""
    kinds = {
        "repetition_penalty": RepetitionPenaltyLogitsProcessor,
        "no_repeat_ngram_size": NoRepeatNGramLogitsProcessor,
        "temperature": TemperatureLogitsWarper,
        "top_k": TopKLogitsWarper,
        "top_p": TopPLogitsWarper,
        "min_p": MinPLogitsWarper,
    }
    return [kind(options[name]) for name, kind in kinds.items() if options.get(name)]


def sampler_for(case: Case, processors: Sequence[Processor], seed: int) -> Sampler:
    generator = torch.Generator().manual_seed(seed)
    return Sampler(case.prompt, Sampling(processors, sample=True, generator=generator))


@cache
def sampled_case(seed: int) -> tuple[Case, tuple[Processor, ...]]:
    """What plain decoding samples; transformers' `generate` samples the same."""
    dice = random.Random(seed)
    model = random_model(dice.randrange(6), num_key_value_heads=dice.choice([1, 2, 4]))
    options, limit = random_options(dice), dice.randint(1, 40)
    eos = frozenset(dice.sample(range(VOCABULARY), dice.randint(0, 2)))
    torch.manual_seed(seed)
    arguments = {**options, "max_new_tokens": limit, "eos_token_id": sorted(eos) or None, "pad_token_id": 0}
    output = model.generate(torch.tensor([PROMPT]), do_sample=True, **arguments)  # type: ignore[operator]  # of a mixin, not seen by mypy
    case = Case(model, PROMPT, limit, eos, output[0, len(PROMPT) :].tolist())
    processors = tuple(processors_for(options))
    written = Decoder(runner_for(model)).run(PROMPT, Limits(limit, eos), sampler_for(case, processors, seed))
    assert tokens_of(list(written)) == case.expected, f"seed {seed}: plain decoding"
    return case, processors


def check_a_sampled_case(name: str, seed: int) -> int:
    """How many drafted tokens were accepted."""
    (case, processors), dice = sampled_case(seed), random.Random(f"{name} {seed}")
    sampler = sampler_for(case, processors, seed)
    steps = written(name, case, runner_for(case.model), dice, sampler)
    assert tokens_of(steps) == case.expected, f"seed {seed}"
    assert sampler.text == case.prompt + case.expected
    return accepted(steps)


class Forced:
    """Has a model say what it is told to say."""

    def __init__(self, prompt_length: int, answer: Sequence[int]) -> None:
        self._prompt_length, self._answer = prompt_length, answer

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        forced = torch.full_like(scores, -torch.inf)
        forced[0, self._answer[ids.shape[1] - self._prompt_length]] = 0.0
        return forced


SAMPLED = [range(8, 16), range(16, 24), *(range(first, first + 20) for first in range(1000, 1240, 20))]


@decoders
@pytest.mark.parametrize("seeds", [range(8), *(pytest.param(seeds, marks=pytest.mark.full) for seeds in SAMPLED)])
def test_seeded_sampling_equals_plain_decoding_and_generate(name: str, seeds: range) -> None:
    drafts = sum(check_a_sampled_case(name, seed) for seed in seeds)
    assert drafts or name == "autoregressive"


@cache
def drawn_states(name: str, eos: frozenset[int] = frozenset()) -> dict[int, torch.Tensor]:
    """The states of a seeded generator after the steps of a text, by the tokens that were emitted until then."""
    generator = torch.Generator().manual_seed(3)
    sampler = Sampler(PROMPT, Sampling([TopKLogitsWarper(3)], sample=True, generator=generator))
    steps = make(name, runner_for(random_model(1))).run(PROMPT, Limits(25, eos), sampler)
    return {len(sampler.text) - len(PROMPT): generator.get_state() for _ in steps}


@decoders
def test_a_generator_is_drawn_from_once_for_each_emitted_token(name: str) -> None:
    for eos in (frozenset[int](), frozenset(range(0, VOCABULARY, 6))):
        for emitted, state in drawn_states(name, eos).items():
            assert torch.equal(state, drawn_states("autoregressive")[emitted])


@decoders
def test_a_processor_sees_the_text_of_its_own_token_and_no_draft(name: str) -> None:
    model = random_model(3)
    prompt = [*PROMPT, *plain(model, PROMPT, 20), *PROMPT]
    seen: list[list[int]] = []

    def note(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        seen.append(ids[0].tolist())
        return scores

    steps = list(make(name, runner_for(model)).run(prompt, Limits(30), Sampler(prompt, Sampling([note]))))
    assert seen == [prompt + tokens_of(steps)[:end] for end in range(30)]
