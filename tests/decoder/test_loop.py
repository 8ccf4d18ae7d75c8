"""The decode loop: what it asks of drafters, policy and model, and what it tells them."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from ladechat import registry
from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, PassResult, Proposal, Room
from ladechat.decoder.hidden import TransferMaps, Want, merged
from ladechat.decoder.loop import Decoder
from ladechat.decoder.policy import NOT_TAKEN, FixedPolicy, PassPlan, add_whole
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.step import Limits
from ladechat.decoder.verify_mask import SlotTree
from tests.decoder.table_runner import TableRunner
from tests.made_up_costs import free, shared
from tests.made_up_maps import made_up, made_up_kinds
from tests.tiny import run, tokens_of

SEE, THE, CAT, SAT, DOG, RAN = range(6)
SENTENCE = (SEE, THE, CAT, RAN, SEE, THE, DOG, SAT)
EXAMPLE = ((ROOT, CAT), (0, SAT), (ROOT, DOG))


def says_the_sentence(text: tuple[int, ...]) -> NDArray[np.float32]:
    """After a beginning of the sentence its next token, after anything else SEE."""
    known = text == SENTENCE[: len(text)] and len(text) < len(SENTENCE)
    logits = np.zeros(6, np.float32)
    logits[SENTENCE[len(text)] if known else SEE] = 1.0
    return logits


class ToyDrafter(Drafter):
    """Proposes the same nodes, again and again, and keeps what it was told."""

    def __init__(self, nodes: Sequence[tuple[int, int]], source: str = "toy") -> None:
        self._nodes = [Node(parent, token, source, source, 0.5) for parent, token in nodes]
        self.begun: list[tuple[list[int], int]] = []
        self.rooms: list[Room] = []
        self.observed: list[tuple[PassResult, list[int], list[int]]] = []
        self._text: Sequence[int] = ()

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text = text
        self.begun.append((list(text), prompt_length))

    def propose(self, room: Room) -> Proposal:
        self.rooms.append(room)
        return Proposal(self._nodes if room.depth > 1 else ())

    def observe(self, outcome: PassResult, slots: Sequence[int]) -> None:
        self.observed.append((outcome, list(slots), list(self._text)))
        self.snapshot = f"step {len(self.observed)}"


def test_the_example_of_the_loops_docstring() -> None:
    runner, drafter = TableRunner(says_the_sentence), ToyDrafter(EXAMPLE)
    step = next(iter(Decoder(runner, [drafter]).run([SEE, THE], Limits(6))))
    assert step.tokens == (CAT, RAN)
    assert step.slots == 4
    assert step.origins == ("toy", "model")
    assert step.draft is not None
    assert step.draft.path == (0,)
    assert step.draft.verdicts == ("accepted", "rejected", "rejected")
    assert runner.tokens == [SEE, THE, CAT]


def test_a_drafter_is_told_of_the_text_and_of_each_pass() -> None:
    drafter = ToyDrafter(EXAMPLE)
    steps = run(Decoder(TableRunner(says_the_sentence), [drafter]), [SEE, THE], 6)
    assert drafter.begun == [([SEE, THE], 2)]
    text = [SEE, THE]
    for step, (outcome, slots, seen) in zip(steps, drafter.observed, strict=True):
        text += step.tokens
        assert seen == text, "what was emitted belongs to the text when it is observed"
        assert outcome.tokens == step.tokens
        assert [outcome.tree.tokens[slot] for slot in slots] == [token for _, token in EXAMPLE[: len(slots)]]
    assert [step.views for step in steps] == [(f"step {number + 1}",) for number in range(len(steps))]


def test_a_drafter_is_told_what_room_is_left() -> None:
    drafter = ToyDrafter(())
    run(Decoder(TableRunner(says_the_sentence, context_length=5), [drafter]), [SEE, THE], 9)
    assert drafter.rooms == [Room(3, 4), Room(2, 3), Room(1, 2)]


def test_an_answer_that_was_begun_is_no_prompt() -> None:
    drafter = ToyDrafter(EXAMPLE)
    list(Decoder(TableRunner(says_the_sentence), [drafter]).run(SENTENCE[:5], Limits(2), generated=3))
    assert drafter.begun == [(list(SENTENCE[:5]), 2)]


def test_drafters_share_slots_and_the_first_one_has_brought_them() -> None:
    first, second = ToyDrafter([(ROOT, DOG), (ROOT, CAT)], "first"), ToyDrafter([(ROOT, CAT), (0, RAN)], "second")
    step = next(iter(Decoder(TableRunner(says_the_sentence), [first, second]).run([SEE, THE], Limits(6))))
    assert step.slots == 4
    assert step.tokens == (CAT, RAN, SEE)
    assert step.origins == ("first", "second", "model")


class Choosy(FixedPolicy):
    """Takes first nodes only, and lets drafters be asked in every second step."""

    def __init__(self) -> None:
        self.asked = 0

    def drafting(self) -> bool:
        self.asked += 1
        return self.asked % 2 == 1

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        tree = SlotTree(last_token)
        taken = [add_whole(tree, Proposal(one.nodes[:1])) for one in proposals]
        pairs = zip(taken, proposals, strict=True)
        return PassPlan(tree, [[*slots, *[NOT_TAKEN] * (len(one.nodes) - len(slots))] for slots, one in pairs])


def test_a_policy_may_leave_drafts_out_and_ask_nobody() -> None:
    drafter = ToyDrafter(EXAMPLE)
    steps = run(Decoder(TableRunner(says_the_sentence), [drafter], Choosy()), [SEE, THE], 6)
    assert [token for step in steps for token in step.tokens] == list(SENTENCE[2:])
    assert [step.slots for step in steps[:3]] == [2, 1, 2]
    assert [slots for _, slots, _ in drafter.observed[:2]] == [[1, NOT_TAKEN, NOT_TAKEN], []]
    assert len(drafter.rooms) == (len(steps) + 1) // 2


def test_a_drafter_that_is_free_is_asked_in_every_step() -> None:
    drafter = ToyDrafter(EXAMPLE)
    drafter.free = True
    steps = run(Decoder(TableRunner(says_the_sentence), [drafter], Choosy()), [SEE, THE], 6)
    assert [token for step in steps for token in step.tokens] == list(SENTENCE[2:])
    assert len(drafter.rooms) == len(steps)


class Wanting(ToyDrafter):
    """Wants the hidden states of all slots."""

    def want(self, tree: SlotTree) -> Want:
        return Want(carriers=range(len(tree)))


class Carrying(FixedPolicy):
    """Lets the same slots carry rows in every pass."""

    def __init__(self, carriers: Sequence[int] | None) -> None:
        self.carriers = carriers

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        return super().choose(last_token, proposals)._replace(carriers=self.carriers)


@pytest.mark.parametrize(("carriers", "given"), [(None, [0, 1, 2, 3]), ([0, 2], [0, 2]), ([], None)])
def test_a_policy_says_which_slots_may_carry_rows(carriers: list[int] | None, given: list[int] | None) -> None:
    drafter = Wanting(EXAMPLE)
    steps = run(Decoder(TableRunner(says_the_sentence), [drafter], Carrying(carriers)), [SEE, THE], 6)
    assert [token for step in steps for token in step.tokens] == list(SENTENCE[2:])
    hidden = drafter.observed[0][0].hidden
    assert (hidden and list(hidden.carriers)) == given


def test_a_plain_pass_has_one_slot_and_no_hidden_states() -> None:
    """A pass of one slot with hidden states takes longer: it is no measure of plain decoding."""
    runner = TableRunner(says_the_sentence)
    assert all(step.plain for step in run(Decoder(runner), [SEE, THE], 6))
    assert {
        (step.slots > 1, step.plain) for step in run(Decoder(runner, [ToyDrafter(EXAMPLE)], Choosy()), [SEE, THE], 6)
    } == {
        (True, False),
        (False, True),
    }
    wanting = run(Decoder(runner, [Wanting([])]), [SEE, THE], 6)
    assert {(step.slots, step.plain) for step in wanting} == {(1, False)}


def test_where_no_slot_that_a_drafter_wants_may_carry_rows_a_pass_has_none() -> None:
    maps = made_up("transfer", depth=2, width=4).maps
    assert isinstance(maps, TransferMaps)
    assert merged([Want(maps, range(2))], [5]) is None
    assert merged([Want()], [5]) is not None, "heads take the hidden states of all slots, without rows"


@pytest.mark.parametrize("name", registry.DECODERS)
def test_only_plain_decoding_runs_on_a_model_that_takes_one_token_a_pass(name: str) -> None:
    runner = TableRunner(says_the_sentence, capabilities=Capabilities("it keeps a recurrent state."))
    decoder = registry.make(name, runner, shared(free, trained=made_up_kinds(1, 4)))
    if name == "autoregressive":
        assert tokens_of(run(decoder, [SEE], 3)) == [THE, CAT, RAN]
    else:
        with pytest.raises(ValueError, match=rf"{decoder.name} cannot run on this model: it keeps a recurrent state"):
            run(decoder, [SEE], 3)


def test_logits_that_are_no_numbers_end_the_run_and_leave_no_trace_in_the_cache() -> None:
    def overflows(text: tuple[int, ...]) -> NDArray[np.float32]:
        return says_the_sentence(text) * np.float32(np.nan if len(text) > 3 else 1)

    for drafters in ([], [ToyDrafter(EXAMPLE)]):
        runner = TableRunner(overflows)
        with pytest.raises(FloatingPointError, match="not finite"):
            run(Decoder(runner, drafters), [SEE, THE], 6)
        assert runner.tokens == list(SENTENCE[: len(runner.tokens)])
        assert len(runner.tokens) <= 3


def test_a_prompt_that_fills_the_context_gets_no_answer() -> None:
    assert run(Decoder(TableRunner(says_the_sentence, context_length=4)), SENTENCE[:4], 9) == []


def test_parameters_that_no_drafter_knows_are_left_alone() -> None:
    decoder = registry.make("lookahead", TableRunner(says_the_sentence))
    decoder.configure({"unheard_of": 3, "window": 2, "ngram": 2})
    step = next(iter(decoder.run([SEE, THE], Limits(6))))
    assert step.window is not None
    assert step.window.rows[0][0] == THE and [len(row) for row in step.window.rows] == [2]
