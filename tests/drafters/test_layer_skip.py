"""Layer skipping: the text of plain decoding, whatever is skipped, and nothing of a draft stays in the cache."""

import random
from collections.abc import Iterator, Sequence, Set
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from ladechat import registry
from ladechat.decoder.drafters.drafter import Drafter, Proposal, Room
from ladechat.decoder.drafters.layer_skip import FIRST_THRESHOLD, LayerSkipDrafter
from ladechat.decoder.layer_skipping_model import Drafted, LayerSkippingModel
from ladechat.decoder.loop import Decoder
from ladechat.decoder.policy import NOT_TAKEN, FixedPolicy, PassPlan, Policy
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.decoder.step import Limits, Step
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.loading.self_check import tree_runner
from ladechat.model.runners.graphs import unrecorded
from ladechat.model.runners.logits import fill
from ladechat.model.runners.tree import TreeRunner
from tests.model.runners.trees import TOLERANCE, random_tree
from tests.tiny import VOCABULARY, accepted, layered_runner_for, plain, random_model, run, runner_for, tokens_of

CONTEXT = 256
NO_LAYERS: frozenset[int] = frozenset()
ARCHITECTURES: list[tuple[str, dict[str, Any]]] = [
    ("llama", {}),
    ("mistral", {"sliding_window": 6}),
    ("gemma2", {"sliding_window": 6}),
    ("gemma3_text", {"sliding_window": 6, "num_hidden_layers": 6}),
    ("qwen3", {}),
    ("phi3", {}),
    ("cohere2", {"sliding_window": 6}),
    ("gpt_oss", {"sliding_window": 6}),
]
each_type = pytest.mark.parametrize(("model_type", "changes"), ARCHITECTURES, ids=[name for name, _ in ARCHITECTURES])


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


def drawn_model(dice: random.Random) -> PreTrainedModel:
    return random_model(dice.randrange(4), num_hidden_layers=dice.choice([2, 3, 4]))


def drawn_layers(dice: random.Random, layers: int) -> frozenset[int]:
    """Layers to skip: none, all but one, or any number between."""
    return frozenset(dice.sample(range(layers), dice.choice([0, layers - 1, dice.randrange(layers)])))


def drawn_prompt(dice: random.Random) -> list[int]:
    return [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 30))]


def filled(model: PreTrainedModel, text: Sequence[int]) -> TreeRunner:
    """A runner whose cache holds a text but for its last token."""
    runner = layered_runner_for(model, CONTEXT)
    fill(runner, text)
    return runner


def drafting(runner: TreeRunner, skipped: Set[int] | None = None, nodes: int = 8) -> Decoder:
    return Decoder(runner, [LayerSkipDrafter(runner, skipped, nodes)], name="Layer skipping")


# --- the text --------------------------------------------------------------------------------------------------------


def check_a_case(seed: int, *, sample: bool) -> int:
    """A text with all settings changed at random moments; how many drafts were accepted."""
    dice = random.Random(seed)
    model, prompt, limit = drawn_model(dice), drawn_prompt(dice), dice.randint(1, 40)
    limits = Limits(limit, frozenset(dice.sample(range(VOCABULARY), dice.randint(0, 2))))

    def sampler() -> Sampler:
        return Sampler(prompt, Sampling(sample=sample, generator=torch.Generator().manual_seed(seed)))

    expected = tokens_of(list(Decoder(runner_for(model)).run(prompt, limits, sampler())))
    runner = layered_runner_for(model, CONTEXT)
    drafter = LayerSkipDrafter(runner, drawn_layers(dice, runner.layers), dice.randint(1, 32))
    drafter.threshold = dice.choice([0.0, 0.3, FIRST_THRESHOLD])
    steps: list[Step] = []
    for step in Decoder(runner, [drafter]).run(prompt, limits, sampler()):
        steps.append(step)
        assert list(runner.tokens) == [*prompt, *tokens_of(steps)][:-1] and runner.cache.length == len(runner.tokens)
        if dice.random() < 0.3:
            drafter.configure({"nodes": dice.randint(1, 32)})
            drafter.skipped = drawn_layers(dice, runner.layers)
    assert tokens_of(steps) == expected, f"seed {seed}"
    return accepted(steps)


MANY_MORE = [pytest.param(range(first, first + 20), marks=pytest.mark.full) for first in range(1000, 1240, 20)]


@pytest.mark.parametrize("seeds", [range(8), range(8, 16), *MANY_MORE])
def test_greedy_text_is_that_of_plain_decoding(seeds: range) -> None:
    assert sum(check_a_case(seed, sample=False) for seed in seeds)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 16), marks=pytest.mark.full), *MANY_MORE])
def test_sampled_text_is_that_of_plain_decoding_with_the_same_seed(seeds: range) -> None:
    assert sum(check_a_case(seed, sample=True) for seed in seeds)


@each_type
def test_with_nothing_skipped_every_draft_is_accepted(model_type: str, changes: dict[str, Any]) -> None:
    """Then a draft is plain decoding. So the drafting pass sees what it has to see, at its place, in its windows."""
    model = random_model(1, model_type, **changes)
    for seed in range(2):
        dice = random.Random(seed)
        prompt, nodes = drawn_prompt(dice), dice.randint(1, 12)
        decoder = drafting(tree_runner(model, CONTEXT), NO_LAYERS, nodes)
        (drafter,) = decoder.drafters
        assert isinstance(drafter, LayerSkipDrafter)
        drafter.threshold = 0.0
        steps = run(decoder, prompt, 30)
        assert tokens_of(steps) == plain(model, prompt, 30)
        assert all(verdict == "accepted" for step in steps if step.draft for verdict in step.draft.verdicts)
        assert len(steps) == -(-30 // (nodes + 1))


@each_type
def test_layers_are_skipped_in_every_architecture(model_type: str, changes: dict[str, Any]) -> None:
    model = random_model(1, model_type, **changes)
    for seed in range(2):
        dice = random.Random(seed)
        prompt, runner = drawn_prompt(dice), tree_runner(model, CONTEXT)
        steps = run(drafting(runner, drawn_layers(dice, runner.layers)), prompt, 30)
        assert tokens_of(steps) == plain(model, prompt, 30)


@pytest.mark.parametrize("context", [9, 40])
def test_drafts_stay_inside_the_context(context: int) -> None:
    model, prompt = random_model(2), [5, 8, 13, 21, 34, 5, 8, 13]
    runner = layered_runner_for(model, context)
    steps = run(drafting(runner, NO_LAYERS, nodes=32), prompt, 1000)  # a place beyond is an error
    assert tokens_of(steps) == plain(model, prompt, context - len(prompt))


class TakesNothing(FixedPolicy):
    """Asks for drafts and verifies none."""

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        return PassPlan(SlotTree(last_token), [[NOT_TAKEN] * len(proposal.nodes) for proposal in proposals])


@pytest.mark.parametrize("policy", [FixedPolicy(), TakesNothing()])
def test_drafts_that_overflow_do_not_spoil_recorded_passes(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorded pass reads the places behind its own slots, too, where drafts were: 0 · NaN is NaN."""
    model, prompt = random_model(0), [5, 6, 7]
    runner = layered_runner_for(model, 2048)
    runner.use_graphs(unrecorded)
    assert runner.graphs is not None and runner.loop is not None
    through = runner.loop.through

    def overflowing(layer: int, hidden: Any, mask: Any, positions: Any, angles: Any, cache: Any) -> torch.Tensor:
        after = through(layer, hidden, mask, positions, angles, cache)
        return after * torch.nan if int(positions[0, 0]) > len(runner.tokens) else after

    monkeypatch.setattr(runner.loop, "through", overflowing)
    drafter = LayerSkipDrafter(runner, {1})
    drafter.threshold = 0.0
    steps = run(Decoder(runner, [drafter], policy), prompt, 60)
    assert tokens_of(steps) == plain(model, prompt, 60)
    assert runner.graphs.history
    assert max(step.slots for step in steps) <= 2, "what is not a number is no draft"


@pytest.mark.parametrize("seed", range(6))
def test_decoders_may_be_switched_mid_way_also_on_recorded_passes(seed: int) -> None:
    """What drafting has left in the places of the next passes, they write anew."""
    dice, model = random.Random(seed), random_model(seed % 3)
    prompt, written = drawn_prompt(dice), list[int]()
    runner = layered_runner_for(model, 2048)
    runner.use_graphs(unrecorded)
    while len(written) < 60:
        skipping = drafting(runner, drawn_layers(dice, runner.layers), dice.randint(1, 12))
        decoder = dice.choice([skipping, skipping, registry.lookahead(runner), Decoder(runner)])
        steps = decoder.run([*prompt, *written], Limits(60 - len(written)), generated=len(written))
        written += tokens_of([step for _, step in zip(range(dice.randint(1, 6)), steps, strict=False)])
    assert written == plain(model, prompt, 60)
    assert runner.graphs is not None and runner.graphs.history


# --- the cache -------------------------------------------------------------------------------------------------------


class Recorded(LayerSkipDrafter):
    """Keeps what it proposes."""

    def __init__(self, model: LayerSkippingModel, skipped: Set[int]) -> None:
        super().__init__(model, skipped)
        self.proposals: list[Proposal] = []

    def propose(self, room: Room) -> Proposal:
        self.proposals.append(super().propose(room))
        return self.proposals[-1]


class Replayed(Drafter):
    """Proposes what another one has, and runs no model for it."""

    def __init__(self, proposals: Sequence[Proposal]) -> None:
        self._proposals = iter(proposals)

    def propose(self, room: Room) -> Proposal:
        return next(self._proposals)


@pytest.mark.parametrize("seed", range(12))
def test_drafting_leaves_no_trace(seed: int) -> None:
    """The same drafts verified without ever drafting: logits and cache are equal to the last bit."""
    dice = random.Random(seed)
    model, prompt = drawn_model(dice), drawn_prompt(dice)
    runner, other = layered_runner_for(model, CONTEXT), layered_runner_for(model, CONTEXT)
    drafter = Recorded(runner, drawn_layers(dice, runner.layers))
    steps = run(Decoder(runner, [drafter]), prompt, 30)
    expected = run(Decoder(other, [Replayed(drafter.proposals)]), prompt, 30)
    assert [(one.tokens, one.logprobs, one.draft) for one in steps] == [
        (one.tokens, one.logprobs, one.draft) for one in expected
    ]
    assert runner.tokens == other.tokens
    for mine, theirs in zip(*(one.cache.all_rows(one.cache.length) for one in (runner, other)), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("seed", range(12))
def test_a_pass_after_drafts_is_the_same_to_the_last_bit(seed: int) -> None:
    """Any tree, not only that of the drafts; and the cache holds what one of plain decoding holds."""
    dice = random.Random(seed)
    model, text = drawn_model(dice), [*drawn_prompt(dice), 5]
    runner, untouched, tree = filled(model, text), filled(model, text), random_tree(dice, VOCABULARY)
    expected = untouched.forward(tree).clone()
    for _ in range(2):
        runner.draft(text[-1], drawn_layers(dice, runner.layers), dice.randint(1, 32), 0.0)
    assert list(runner.tokens) == text[:-1] and runner.cache.length == len(text) - 1
    assert torch.equal(runner.forward(tree), expected)
    runner.commit([0])
    untouched.commit([0])
    for mine, theirs in zip(*(one.cache.all_rows(len(text)) for one in (runner, untouched)), strict=True):
        assert torch.equal(mine, theirs)


def test_a_draft_cannot_be_committed() -> None:
    text = [5, 6, 7]
    runner = filled(random_model(0), text)
    runner.forward(SlotTree(7))
    runner.draft(7, {1}, 4, 0.0)
    with pytest.raises(RuntimeError, match="no pass"):
        runner.commit([0])


# --- the drafts ------------------------------------------------------------------------------------------------------


def slow_drafts(model: Any, cached: Sequence[int], token: int, skipped: Set[int], most: int) -> list[Drafted]:
    """Nothing is cached here: cached tokens go through all layers, drafts through those that are left, where they see
    the cached tokens as the whole model has them.
    """
    decoder = model.model

    def through(module: Any, rows: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(rows.shape[1])[None]
        mask = torch.full((rows.shape[1],) * 2, -1e30).triu(1)[None, None]
        angles = decoder.rotary_emb(rows, positions)
        after: torch.Tensor = module(rows, attention_mask=mask, position_ids=positions, position_embeddings=angles)
        return after

    before = [decoder.embed_tokens(torch.tensor([list(cached)]))]
    for module in decoder.layers:
        before.append(through(module, before[-1]))
    text, drafted = [token], list[Drafted]()
    for _ in range(most):
        rows = decoder.embed_tokens(torch.tensor([text]))
        for layer, module in enumerate(decoder.layers):
            if layer not in skipped:
                rows = through(module, torch.cat([before[layer], rows], 1))[:, len(cached) :]
        probability, likeliest = model.lm_head(decoder.norm(rows))[0, -1].softmax(-1).max(-1)
        text.append(int(likeliest))
        drafted.append(Drafted(text[-1], float(probability)))
    return drafted


@pytest.mark.parametrize("seed", range(20))
def test_drafts_are_those_of_a_slow_plain_computation(seed: int) -> None:
    dice = random.Random(seed)
    model, text = drawn_model(dice), [*drawn_prompt(dice), 5]
    runner = filled(model, text)
    skipped = drawn_layers(dice, runner.layers)
    drafted = runner.draft(text[-1], skipped, 6, 0.0)
    expected = slow_drafts(model, text[:-1], text[-1], skipped, 6)
    assert [one.token for one in drafted] == [one.token for one in expected]
    assert [one.probability for one in drafted] == pytest.approx([one.probability for one in expected], abs=TOLERANCE)


def test_a_draft_ends_with_the_first_token_below_the_threshold() -> None:
    runner = filled(random_model(0), [5, 6, 7])
    whole = runner.draft(7, {1}, 12, 0.0)
    for end, one in enumerate(whole):
        threshold = one.probability + 1e-6
        before = [other.probability for other in whole[:end]]
        if all(probability >= threshold for probability in before):
            assert runner.draft(7, {1}, 12, threshold) == whole[: end + 1]
    assert len(whole) == 12


def test_a_model_whose_layers_cannot_be_run_alone_does_not_draft() -> None:
    runner = runner_for(random_model(0))  # nobody has checked its layers
    assert runner.layers == 0
    with pytest.raises(ValueError, match="logits alone"):
        runner.draft(5, {1}, 3, 0.5)
    with pytest.raises(ValueError, match="Some of 0 layers"):
        LayerSkipDrafter(runner)


def test_drafts_beyond_the_context_are_refused() -> None:
    runner = layered_runner_for(random_model(0), 8)
    fill(runner, [5, 6, 7, 8, 9, 10])
    assert len(runner.draft(10, {1}, 3, 0.0)) == 3
    with pytest.raises(ValueError, match="beyond a context of 8"):
        runner.draft(10, {1}, 4, 0.0)
