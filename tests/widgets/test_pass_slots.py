"""The mask that is drawn is the one that the pass had, cell by cell, and windows are recognised in the tree."""

from collections.abc import Sequence

import pytest
from torch import Tensor

from ladechat import registry
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits
from ladechat.decoder.verify_mask import SlotTree
from ladechat.engine.step_events import step_event
from ladechat.protocol import Step
from ladechat.widgets.steps.draft_tree import mask_of, slots_of
from tests.decoder.table_runner import TableRunner, random_table
from tests.made_up_costs import free, shared


class Names:
    """Tokens by their numbers."""

    def name(self, token: int) -> str:
        return f"t{token}"

    def names(self, tokens: Sequence[int]) -> list[str]:
        return [self.name(token) for token in tokens]


def passes(runner: TableRunner, decoder: Decoder) -> list[tuple[SlotTree, Step]]:
    """The tree of each pass of an answer, and what its step event says of it."""
    trees: list[SlotTree] = []
    forward = runner.forward

    def noted(tree: SlotTree) -> Tensor:
        trees.append(tree)
        return forward(tree)

    runner.forward = noted  # type: ignore[method-assign]  # to see what goes into the model
    steps = decoder.run([1, 2, 3, 1, 2], Limits(40))
    names = Names()
    events = [
        step_event(step, names, turn=1, index=index, pieces=names.names(step.tokens), step_ms=1.0, plain_ms=None)  # type: ignore[arg-type]  # it names tokens, which is all that is asked
        for index, step in enumerate(steps)
    ]
    return list(zip(trees, events, strict=True))


@pytest.mark.parametrize("vocabulary", [4, 9, 40])
@pytest.mark.parametrize("decoder", ["lookahead", "jacobi", "suffix", "auto", "autoregressive"])
def test_the_mask_is_that_of_the_pass(decoder: str, vocabulary: int) -> None:
    runner = random_table(vocabulary, seed=vocabulary)
    made = registry.make(decoder, runner, shared(free, window=True))
    sizes = []
    for tree, event in passes(runner, made):
        slots, mask = slots_of(event), mask_of(slots_of(event))
        sizes.append(len(slots))
        assert len(slots) == event.timing.slots == len(tree)
        for asking in range(len(tree)):
            assert [bool(mask[asking] >> seen & 1) for seen in range(len(tree))] == tree.mask[asking].tolist()
        for slot, position in zip(slots, tree.positions.tolist(), strict=True):
            assert slot.row is None or slot.row <= position, "a cell stands at its row plus its column"
    assert decoder == "autoregressive" or max(sizes) > 3
