"""Tokens are chosen one by one, as they are emitted; what is sampled has the model's distribution.

That every decoder samples, with one seed, what plain decoding samples: see tests/test_exactness.py.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ladechat import registry
from ladechat.decoder.drafters.pool import PoolDrafter
from ladechat.decoder.drafters.recycling import RecyclingDrafter
from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import Processor, Sampler, Sampling
from ladechat.decoder.step import Limits
from ladechat.engine.sampling import sampling
from ladechat.protocol import Settings
from tests.decoder.table_runner import TableRunner, random_table
from tests.made_up_costs import free, shared
from tests.tiny import random_model, runner_for, tokens_of

PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]


def test_the_sampling_may_change_between_two_steps() -> None:
    model = random_model(2)

    def written(decoder: Decoder, change_at: int | None) -> tuple[list[int], list[int]]:
        """The text, and where steps ended; the penalty begins with the step after `change_at` tokens."""
        sampler = Sampler(PROMPT)
        tokens, ends = list[int](), list[int]()
        for step in decoder.run(PROMPT, Limits(20), sampler):
            tokens += step.tokens
            ends.append(len(tokens))
            if len(tokens) == change_at:
                sampler.sampling = Sampling([RepetitionPenaltyLogitsProcessor(5.0)])
        return tokens, ends

    unchanged, ends = written(registry.lookahead(runner_for(model)), None)
    at = ends[1]
    changed, _ = written(registry.lookahead(runner_for(model)), at)
    plainly, _ = written(Decoder(runner_for(model)), at)
    assert changed == plainly != unchanged
    assert changed[:at] == unchanged[:at]


def test_a_seeded_draw_depends_on_its_place_alone() -> None:
    logits = torch.zeros(1000)
    sampling = Sampling(sample=True, generator=torch.Generator())
    whole = Sampler(PROMPT, sampling, seed=3)
    answer = [whole.sample(logits) for _ in range(8)]
    assert len(set(answer)) > 4
    rest = Sampler([2, *answer[:5]], sampling, seed=3, answered=5)
    assert [rest.sample(logits) for _ in range(3)] == answer[5:]
    assert Sampler(PROMPT, sampling, seed=4).sample(logits) != answer[0]


def test_logits_that_are_no_numbers_are_an_error_and_no_draw() -> None:
    sampler = Sampler(PROMPT, Sampling(sample=True))
    with pytest.raises(FloatingPointError, match="--dtype"):
        sampler.sample(torch.tensor([0.0, math.nan, 1.0]))
    assert sampler.text == PROMPT


def test_a_temperature_that_is_all_but_nothing_takes_the_argmax() -> None:
    sampler = Sampler([1], sampling(torch.Generator(), Settings(decoder="autoregressive", temperature=1e-39)))
    assert sampler.sample(torch.tensor([1.0, 30.0, 2.0])) == 1


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
OTHERS = ["auto", "auto with its window", "suffix", "recycling", "jacobi", "prompt_lookup"]


Text = tuple[int, ...]


def enumerated(runner: TableRunner, processors: Sequence[Processor], prompt: Sequence[int]) -> dict[Text, float]:
    """The probability of every text of three tokens after the prompt."""
    processed: Processor = LogitsProcessorList(processors)
    probabilities: dict[Text, float] = {(): 1.0}
    for _ in range(LENGTH):
        longer: dict[Text, float] = {}
        for begun, probability in probabilities.items():
            prefix = (*prompt, *begun)
            scores = processed(torch.tensor([prefix]), torch.from_numpy(runner.logits(prefix))[None].clone())
            for token, chance in enumerate(scores.softmax(-1)[0].tolist()):
                longer[*begun, token] = probability * chance
        probabilities = longer
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


def check_the_distribution(decoder: Decoder, processors: list[Processor], draws: int, seed: int) -> None:
    """A decoder that has been told the likeliest texts in advance, and so accepts drafts."""
    runner, prompt = decoder.runner, [4, 1, 4]  # 1 is likely to come again, so prompt lookup is right at times
    assert isinstance(runner, TableRunner)
    expected = enumerated(runner, processors, prompt)
    likely = sorted(expected, key=lambda text: expected[text])[-4:]
    for drafter in decoder.drafters:
        if isinstance(drafter, PoolDrafter):
            for text in likely:
                drafter.pool.add((prompt[-1], *text[:2]), "prompt")
        if isinstance(drafter, RecyclingDrafter):
            list(decoder.run([*prompt, *likely[-1], *prompt, *likely[-1]], Limits(8)))  # fills the table
    sampling = Sampling(processors, sample=True, generator=torch.Generator().manual_seed(seed))
    counts: Counter[Text] = Counter()
    accepted = 0
    for _ in range(draws):
        steps = list(decoder.run(prompt, Limits(LENGTH), Sampler(prompt, sampling)))
        counts[tuple(tokens_of(steps))] += 1
        accepted += sum(origin != "model" for step in steps for origin in step.origins)
    assert accepted > draws / 20
    assert deviation(counts, expected) < 4


@pytest.mark.parametrize(("draws", "seed"), [(1200, 1), pytest.param(100_000, 2, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", WARPERS)
def test_sampled_texts_have_the_models_distribution(name: str, draws: int, seed: int) -> None:
    decoder = registry.lookahead(random_table(SMALL, seed), window=2, ngram=3, guesses=4)
    check_the_distribution(decoder, WARPERS[name], draws, seed)


@pytest.mark.parametrize(
    ("warpers", "draws", "seed"),
    [("top-k 3, temperature 1.5", 600, 1), pytest.param("temperature 0.7", 20_000, 2, marks=pytest.mark.full)],
)
@pytest.mark.parametrize("name", OTHERS)
def test_sampled_texts_of_every_other_way_to_draft_have_it_too(name: str, warpers: str, draws: int, seed: int) -> None:
    decoder = registry.make(name.split()[0], random_table(SMALL, seed), shared(free, window="window" in name))
    check_the_distribution(decoder, WARPERS[warpers], draws, seed)


def test_the_deviation_tells_a_wrong_distribution() -> None:
    runner = random_table(SMALL, seed=1)
    right, warm = enumerated(runner, [], [0]), enumerated(runner, [TemperatureLogitsWarper(1.15)], [0])
    texts = random.Random(0).choices(list(warm), list(warm.values()), k=3000)
    assert deviation(Counter(texts), right) > 5
    assert deviation(Counter(texts), warm) < 4
