"""With one seed, every decoder samples what plain decoding does; and what it samples has the model's distribution."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ladechat.decoder.acceptance import log_probabilities
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.jacobi_only import JacobiDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.prompt_lookup import PromptLookupDecoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Processor, Selection, Selector
from ladechat.decoder.step import Decoder, Limits, Step
from ladechat.model.sampling import selection
from tests.decoder.table_runner import TableRunner
from tests.tiny import VOCABULARY, random_model, runner_for, tokens_of

PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]


def random_settings(dice: random.Random) -> LookaheadSettings:
    return LookaheadSettings(dice.randint(1, 8), dice.randint(2, 6), dice.randint(0, 8))


def random_decoder(runner: Runner, dice: random.Random, written: Sequence[int]) -> Decoder:
    """Any of the fast decoders; a lookahead decoder's pool knows parts of the text to come, and nonsense."""
    kind = dice.choice(["lookahead", "lookahead", "jacobi", "prompt_lookup"])
    if kind == "jacobi":
        return JacobiDecoder(runner, dice.randint(1, 8))
    if kind == "prompt_lookup":
        return PromptLookupDecoder(runner, dice.randint(1, 8), dice.randint(1, 3))
    decoder = LookaheadDecoder(runner, random_settings(dice))
    for start in range(len(written) - 1):
        if dice.random() < 0.5:
            decoder.pool.add(written[start : start + dice.randint(2, 6)], "prompt")
        decoder.pool.add([dice.randrange(VOCABULARY) for _ in range(3)], "window")
    return decoder


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


def assert_followed(step: Step, ended: bool) -> None:
    """A drawn token that a draft foresaw is followed: a step ends where the drafts do, or the text."""
    assert step.draft is not None
    edges = zip(step.draft.parents, step.draft.tokens, strict=True)
    children = {edge: node for node, edge in enumerate(edges)}
    node: int | None = -1
    for token in step.tokens:
        assert node is not None
        node = children.get((node, token))
    assert node is None or ended


def sampling(processors: Sequence[Processor], seed: int) -> Selector:
    return Selector(PROMPT, Selection(processors, sample=True, generator=torch.Generator().manual_seed(seed)))


def check_a_random_case(seed: int) -> int:
    """How many drafted tokens were accepted."""
    dice = random.Random(seed)
    model = random_model(dice.randrange(6), num_key_value_heads=dice.choice([1, 2, 4]))
    options, limit = random_options(dice), dice.randint(1, 40)
    eos = frozenset(dice.sample(range(VOCABULARY), dice.randint(0, 2)))
    processors = processors_for(options)
    plain = AutoregressiveDecoder(runner_for(model))
    expected = tokens_of(list(plain.run(PROMPT, Limits(limit, eos), sampling(processors, seed))))

    torch.manual_seed(seed)
    arguments = {**options, "max_new_tokens": limit, "eos_token_id": sorted(eos) or None, "pad_token_id": 0}
    output = model.generate(torch.tensor([PROMPT]), do_sample=True, **arguments)  # type: ignore[operator]  # of a mixin, not seen by mypy
    assert output[0, len(PROMPT) :].tolist() == expected, f"seed {seed}: plain decoding"

    decoder = random_decoder(runner_for(model), dice, [PROMPT[-1], *expected])
    selector = sampling(processors, seed)
    written, accepted = list[int](), 0
    for step in decoder.run(PROMPT, Limits(limit, eos), selector):
        written += step.tokens
        accepted += sum(origin != "model" for origin in step.origins)
        assert_followed(step, ended=len(written) == limit or written[-1] in eos)
        if isinstance(decoder, LookaheadDecoder) and dice.random() < 0.2:
            decoder.settings = random_settings(dice)
    assert written == expected, f"seed {seed}"
    assert selector.text == PROMPT + written
    return accepted


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_seeded_sampling_equals_plain_decoding_and_generate(first: int) -> None:
    assert sum(map(check_a_random_case, range(first, first + 8)))


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 1240, 20))
def test_seeded_sampling_equals_plain_decoding_and_generate_in_many_more_cases(first: int) -> None:
    assert sum(map(check_a_random_case, range(first, first + 20)))


def test_a_generator_is_drawn_from_once_for_each_emitted_token() -> None:
    model = random_model(1)
    for eos in range(0, VOCABULARY, 9):
        generators = [torch.Generator().manual_seed(3) for _ in range(2)]
        decoders: list[Decoder] = [
            AutoregressiveDecoder(runner_for(model)),
            LookaheadDecoder(runner_for(model), LookaheadSettings(6, 4, 6)),
        ]
        for generator, decoder in zip(generators, decoders, strict=True):
            selector = Selector(PROMPT, Selection([TopKLogitsWarper(3)], sample=True, generator=generator))
            list(decoder.run(PROMPT, Limits(25, frozenset([eos])), selector))
        assert torch.equal(*(generator.get_state() for generator in generators))


def test_the_selection_may_change_between_two_steps() -> None:
    model = random_model(2)

    def written(decoder: Decoder, change_at: int | None) -> tuple[list[int], list[int]]:
        """The text, and where steps ended; the penalty begins with the step after `change_at` tokens."""
        selector = Selector(PROMPT)
        tokens, ends = list[int](), list[int]()
        for step in decoder.run(PROMPT, Limits(20), selector):
            tokens += step.tokens
            ends.append(len(tokens))
            if len(tokens) == change_at:
                selector.selection = Selection([RepetitionPenaltyLogitsProcessor(5.0)])
        return tokens, ends

    def lookahead() -> Decoder:
        return LookaheadDecoder(runner_for(model), LookaheadSettings(5, 3, 5))

    unchanged, ends = written(lookahead(), None)
    at = ends[1]
    changed, _ = written(lookahead(), at)
    plainly, _ = written(AutoregressiveDecoder(runner_for(model)), at)
    assert changed == plainly != unchanged
    assert changed[:at] == unchanged[:at]


def test_a_processor_sees_the_text_of_its_own_token_and_no_draft() -> None:
    model = random_model(3)
    seen: list[list[int]] = []

    def note(ids: Tensor, scores: Tensor) -> Tensor:
        seen.append(ids[0].tolist())
        return scores

    selector = Selector(PROMPT, Selection([note]))
    written = tokens_of(list(LookaheadDecoder(runner_for(model)).run(PROMPT, Limits(30), selector)))
    assert seen == [PROMPT + written[:end] for end in range(30)]


def test_logits_that_are_no_numbers_are_an_error_and_no_draw() -> None:
    selector = Selector(PROMPT, Selection(sample=True))
    with pytest.raises(FloatingPointError, match="--dtype"):
        selector.select(torch.tensor([0.0, math.nan, 1.0]))
    assert selector.text == PROMPT


def test_a_token_that_the_model_rules_out_may_be_forced_and_has_no_probability() -> None:
    logits = torch.tensor([[0.0, -torch.inf, 0.0], [0.0, torch.nan, 0.0]])
    assert log_probabilities(logits, [0, 0], [1, 2]) == pytest.approx((-math.inf, -math.log(2)))
    with pytest.raises(FloatingPointError):
        log_probabilities(logits, [0, 1], [0, 0])


def test_a_temperature_that_is_all_but_nothing_takes_the_likeliest() -> None:
    selector = Selector([1], selection(torch.Generator(), temperature=1e-39))
    assert selector.select(torch.tensor([1.0, 30.0, 2.0])) == 1


# --- the distribution -----------------------------------------------------------------------------------------------

SMALL = 6
LENGTH = 3
WARPERS: dict[str, list[Processor]] = {
    "temperature 1": [],
    "temperature 0.7": [TemperatureLogitsWarper(0.7)],
    "top-k 3, temperature 1.5": [TemperatureLogitsWarper(1.5), TopKLogitsWarper(3)],
    "top-p 0.8": [TopPLogitsWarper(0.8)],
    "min-p and a repetition penalty": [RepetitionPenaltyLogitsProcessor(1.5), MinPLogitsWarper(0.05)],
}


Text = tuple[int, ...]


def enumerated(runner: TableRunner, processors: Sequence[Processor], prompt: Sequence[int]) -> dict[Text, float]:
    """The probability of every text of three tokens after the prompt."""
    processed: Processor = LogitsProcessorList(processors)
    probabilities: dict[Text, float] = {}
    for text in itertools.product(range(SMALL), repeat=LENGTH):
        probability = 1.0
        for end in range(LENGTH):
            prefix = (*prompt, *text[:end])
            scores = processed(torch.tensor([prefix]), torch.from_numpy(runner.logits(prefix))[None].clone())
            probability *= float(scores.softmax(-1)[0, text[end]])
        probabilities[text] = probability
    return probabilities


def deviation(counts: Counter[Text], expected: dict[Text, float]) -> float:
    """Pearson's χ² in standard deviations of its distribution; texts that are expected less than five times as one."""
    draws = counts.total()
    common = {text: probability for text, probability in expected.items() if draws * probability >= 5}
    rest = 1 - sum(common.values())
    assert all(counts[text] == 0 for text, probability in expected.items() if probability == 0)
    cells = [(counts[text], draws * probability) for text, probability in common.items()]
    if draws * rest >= 5:
        cells.append((draws - sum(count for count, _ in cells), draws * rest))
    chi_squared = sum((count - mean) ** 2 / mean for count, mean in cells)
    freedom = len(cells) - 1
    return (chi_squared - freedom) / math.sqrt(2 * freedom)


def check_the_distribution(name: str, draws: int, seed: int) -> None:
    runner, prompt = TableRunner(SMALL, seed), [0, 3, 1]
    expected = enumerated(runner, WARPERS[name], prompt)
    decoder = LookaheadDecoder(runner, LookaheadSettings(2, 3, 4))
    likely = sorted(expected, key=lambda text: expected[text])[-4:]
    for text in likely:
        decoder.pool.add((prompt[-1], *text[:2]), "prompt")
    selection = Selection(WARPERS[name], sample=True, generator=torch.Generator().manual_seed(seed))
    counts: Counter[Text] = Counter()
    accepted = 0
    for _ in range(draws):
        steps = list(decoder.run(prompt, Limits(LENGTH), Selector(prompt, selection)))
        for index, step in enumerate(steps):
            assert_followed(step, ended=index == len(steps) - 1)
        counts[tuple(tokens_of(steps))] += 1
        accepted += sum(origin != "model" for step in steps for origin in step.origins)
    assert accepted > draws / 10
    assert deviation(counts, expected) < 4


@pytest.mark.parametrize("name", WARPERS)
def test_sampled_texts_have_the_models_distribution(name: str) -> None:
    check_the_distribution(name, draws=1500, seed=1)


@pytest.mark.full
@pytest.mark.parametrize("name", WARPERS)
def test_a_hundred_thousand_sampled_texts_have_the_models_distribution(name: str) -> None:
    check_the_distribution(name, draws=100_000, seed=2)


def test_the_deviation_tells_a_wrong_distribution() -> None:
    runner = TableRunner(SMALL, 1)
    right, warm = enumerated(runner, [], [0]), enumerated(runner, [TemperatureLogitsWarper(1.15)], [0])
    texts = random.Random(0).choices(list(warm), list(warm.values()), k=3000)
    assert deviation(Counter(texts), right) > 5
    assert deviation(Counter(texts), warm) < 4
