"""Several processes that each hold the whole model and share its passes write what one writes."""

import random
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from transformers import TemperatureLogitsWarper

from ladechat import registry
from ladechat.decoder.loop import Decoder
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.parallel import part
from ladechat.model.parallel.part import PartRunner
from ladechat.model.parallel.rank0 import LookaheadRank0
from ladechat.model.runners.cache_probe import UnsupportedModel
from ladechat.model.runners.logits import fill
from ladechat.registry import lookahead
from tests.model.parallel.group import in_processes
from tests.tiny import VOCABULARY, accepted, new_model, plain, random_model, run, runner_for, tokens_of
from tools.tiny_models import tiny_model

FEW, ALL = range(4), range(24)
DRAFTERS = ("auto", "suffix", "recycling", "prompt_lookup", "jacobi")


def prompt(seed: int) -> list[int]:
    """Some tokens, again and again, so that there is something to guess."""
    dice = random.Random(seed)
    return [dice.randrange(3, VOCABULARY) for _ in range(dice.randint(2, 9))] * dice.randint(1, 3)


@pytest.fixture(scope="module", params=[2, 4], ids="{} processes".format)
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LookaheadRank0]:
    with in_processes(random_model(0), tmp_path_factory.mktemp("whole"), request.param) as (runner, _):
        runner.use_graphs()  # on a CPU there are none
        runner.prepare()
        yield runner


seeds = pytest.mark.parametrize("seeds", [FEW, pytest.param(ALL, marks=pytest.mark.full)], ids=["few", "all"])


@seeds
def test_greedy_texts_are_those_of_one_process(runner: LookaheadRank0, seeds: range) -> None:
    drafted = 0
    for seed in seeds:
        steps = run(lookahead(runner, 5, 4, 5), prompt(seed))
        assert tokens_of(steps) == plain(random_model(0), prompt(seed)), seed
        drafted += accepted(steps)
    assert drafted > 0


@seeds
def test_sampled_texts_are_those_of_one_process(runner: LookaheadRank0, seeds: range) -> None:
    for seed in seeds:
        assert sampled(lookahead(runner, 5, 3, 5), seed) == expected_sample(seed), seed


@cache
def expected_sample(seed: int) -> list[int]:
    return sampled(Decoder(runner_for(random_model(0))), seed)


def sampled(decoder: Decoder, seed: int) -> list[int]:
    how = Sampling([TemperatureLogitsWarper(0.7)], sample=True, generator=torch.Generator())
    sampler = Sampler(prompt(seed), how, seed)
    return tokens_of(list(decoder.run(prompt(seed), Limits(30), sampler)))


@pytest.mark.parametrize("name", DRAFTERS)
def test_all_that_draft_tokens_write_the_same(runner: LookaheadRank0, name: str) -> None:
    for seed in range(2):
        assert tokens_of(run(registry.make(name, runner), prompt(seed))) == plain(random_model(0), prompt(seed))


@seeds
def test_w_n_and_g_may_change_in_the_middle_of_an_answer(runner: LookaheadRank0, seeds: range) -> None:
    for seed in seeds:
        dice, decoder, steps = random.Random(seed), lookahead(runner), list[Step]()
        for step in decoder.run(prompt(seed), Limits(40)):
            steps.append(step)
            numbers = (dice.randint(0, 9), dice.randint(2, 6), dice.randint(0, 9))
            decoder.configure(dict(zip(("window", "ngram", "guesses"), numbers, strict=True)))
        assert tokens_of(steps) == plain(random_model(0), prompt(seed)), seed


def test_each_process_passes_its_part_of_the_slots(runner: LookaheadRank0, monkeypatch: pytest.MonkeyPatch) -> None:
    below, own = runner._part._runner, list[int]()
    forward = below.forward

    def counted(tree: SlotTree) -> torch.Tensor:
        own.append(len(tree))
        return forward(tree)

    monkeypatch.setattr(below, "forward", counted)
    steps = run(lookahead(runner, 8, 4, 8), prompt(1))
    assert all(mine <= step.slots for mine, step in zip(own, steps, strict=True))
    assert sum(own) < 0.75 * sum(step.slots for step in steps)


def test_log_probabilities_and_watched_logits_are_those_of_one_process(runner: LookaheadRank0) -> None:
    found, expected = (watched(lookahead(one)) for one in (runner, runner_for(random_model(0))))
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.tokens == theirs.tokens and mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)
        assert mine.logits is not None and theirs.logits is not None
        torch.testing.assert_close(mine.logits, theirs.logits, atol=1e-4, rtol=1e-4)
    last = found[-1].logits
    assert last is not None and runner.largest(last, 3).tolist() == last.topk(3).indices.tolist()


def test_the_largest_logits_of_a_pass_are_those_of_all_its_slots_also_if_more_are_wanted_than_before(
    runner: LookaheadRank0,
) -> None:
    one = runner_for(random_model(0))
    tree = SlotTree(5)
    for token in (6, 7, 8, 9):
        tree.add(tree.add(0, token, "a draft"), token + 3, "a draft")
    for each in (runner, one):
        fill(each, prompt(2))
    for count in (3, 3, 6):
        found, expected = runner.forward(tree), one.forward(tree)
        assert runner.largest(found, count).tolist() == expected.topk(count).indices.tolist()
        for each in (runner, one):
            each.commit([])


def watched(decoder: Decoder) -> list[Step]:
    decoder.watch(lens=False, logits=True)
    return run(decoder, prompt(3))


def test_a_text_fills_the_context_to_its_last_position(runner: LookaheadRank0) -> None:
    for seed in range(4):
        text = (prompt(seed) * 512)[: 512 - 40]
        written = tokens_of(run(lookahead(runner, 5, 3, 5), text, limit=400))
        assert written == plain(random_model(0), text, limit=400) and len(written) == 40


def test_a_second_question_finds_the_first_in_the_cache(runner: LookaheadRank0) -> None:
    first = prompt(5)
    answer = tokens_of(run(lookahead(runner, 5, 4, 5), first))
    second = [*first, *answer, 9, 8, 7]
    assert runner.cached_prefix(second) == len(runner.tokens) == len(first) + len(answer) - 1
    assert tokens_of(run(lookahead(runner, 5, 4, 5), second)) == plain(random_model(0), second)


def test_a_prompt_that_is_stopped_between_chunks_is_gone_on_with(runner: LookaheadRank0) -> None:
    runner.save_memory()  # from here on prompts are read in small chunks
    for seed in range(4):
        run(lookahead(runner, 5, 4, 5), prompt(seed))  # after which one of the processes may lack accepted drafts
        text = [*runner.tokens, *(random.Random(seed).randrange(3, VOCABULARY) for _ in range(200))]
        reading = runner.prefill(text)
        assert next(reading) < next(reading) == len(runner.tokens) < len(text) - 1
        assert tokens_of(run(lookahead(runner), text)) == plain(random_model(0), text)


def test_a_pass_that_is_not_committed_leaves_no_trace(runner: LookaheadRank0) -> None:
    text = prompt(7)
    fill(runner, text)
    for _ in range(2):
        runner.forward(SlotTree.chain([text[-1], 5, 6]))
    runner.commit([])
    assert list(runner.tokens) == text[:-1]
    assert tokens_of(run(lookahead(runner), text)) == plain(random_model(0), text)


def test_a_process_that_lacks_accepted_drafts_reads_the_next_prompt_in_the_same_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part, "distributed", SimpleNamespace(gather=lambda mine, _: None))  # nobody else is there
    below = runner_for(random_model(0), chunk=2)
    second = PartRunner(below, 1, 2)
    fill(second, [5, 6, 7])
    tree = SlotTree.chain([7, 8, 9, 10, 11])
    for token in range(20, 25):
        tree.add(0, token)
    second.forward(tree)
    second.commit([0, 1, 2, 3, 4])
    assert (list(second.tokens), list(below.tokens)) == ([5, 6, 7, 8, 9, 10, 11], [5, 6, 7])
    assert list(second.prefill([*second.tokens, 1, 2, 3, 4, 5])) == [9, 11]
    assert list(second.tokens) == list(below.tokens) == [5, 6, 7, 8, 9, 10, 11, 1, 2, 3, 4]


def test_without_a_pass_there_is_nothing_to_commit() -> None:
    with pytest.raises(RuntimeError, match="no pass whose slots"):
        PartRunner(runner_for(random_model(0)), 0, 2).commit([])


def test_what_cannot_be_divided_is_refused_in_a_sentence() -> None:
    with pytest.raises(UnsupportedModel, match=r"Its passes cannot be shared: .*\.$"):
        PartRunner(choose_runner(tiny_model("mamba"), 64), 0, 2)
    scaling = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    with pytest.raises(UnsupportedModel, match="rotary angles"):
        PartRunner(choose_runner(new_model(0, rope_parameters=scaling), 64), 0, 2)
