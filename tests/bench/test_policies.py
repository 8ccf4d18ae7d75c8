"""The experiments on the decoder's choices: every variant is another one, and writes the same text."""

import json
from unittest.mock import patch

import pytest
import torch

from benchmarks.policies import OURS, ROOT, VARIANTS, Prompt, steps_of, table
from ladechat.decoder.ngram_pool import NGramPool
from ladechat.model.eager import EagerRunner
from tests.tiny import random_model

RANKED = "guesses ranked by the last token alone, not the last two"
RESULT = ROOT / "benchmarks" / "results" / "policies.json"


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    model = random_model(seed=3, vocab_size=24)
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randint(3, 24, (1, 12), generator=generator) for _ in range(3)]
    answers = [model.generate(ids, max_new_tokens=60, do_sample=False)[0, 12:].tolist() for ids in drawn]  # type: ignore[operator]  # typed as any module
    return [Prompt(ids[0].tolist(), answer) for ids, answer in zip(drawn, answers, strict=True)]


@pytest.mark.full
def test_every_variant_differs_from_ours_and_none_changes_the_text(prompts: list[Prompt]) -> None:
    runner = EagerRunner(random_model(seed=3, vocab_size=24), 512)
    steps = {
        name: [steps_of(runner, prompts, one, wng) for wng in ((4, 4, 1), (7, 5, 7), (6, 4, 0))]
        for name, one in VARIANTS.items()
    }
    same = {name for name, counts in steps.items() if name != OURS and counts == steps[OURS]}
    assert same <= {RANKED}  # a random model hardly ever says again what it said after the same two tokens


def test_one_token_ranks_guesses_otherwise_than_two_do() -> None:
    pool = NGramPool()
    pool.add_all([5, 1, 7, 6, 1, 8, 9], 3, "prompt")
    assert pool.guesses(1, 1, 1, [5]) == [((7,), "prompt", 2)]
    ((owner, name, replacement),) = VARIANTS[RANKED].swaps
    with patch.object(owner, name, replacement):
        assert pool.guesses(1, 1, 1, [5]) == [((8,), "prompt", 1)]


def test_the_page_has_the_figures_that_were_measured() -> None:
    report = json.loads(RESULT.read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for part in ("chosen_on", "reported_on"):
        assert table(report[part]["steps"]) in page
