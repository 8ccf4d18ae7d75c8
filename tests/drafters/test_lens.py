"""What pseudo rows read at each layer is the truth about the model, costs nothing unseen, and changes no text."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import torch

from ladechat.decoder.drafters.hidden_transfer import HiddenTransferDrafter
from ladechat.decoder.hidden import TransferMaps
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits
from ladechat.model.runners.tree import TreeRunner
from tests.made_up_maps import CHANCES, made_up_for
from tests.model.runners.test_pseudo_rows import pseudo_states
from tests.tiny import layered_runner_for, plain, random_model, run, tokens_of

PROMPT = [5, 6, 7, 8, 5, 6]


def transfer(runner: TreeRunner, seed: int, carriers: int = 64) -> tuple[Decoder, TransferMaps]:
    maps = made_up_for(runner, seed)["transfer"].maps
    assert isinstance(maps, TransferMaps)
    return Decoder(runner, [HiddenTransferDrafter(maps, CHANCES, carriers=carriers)]), maps


@pytest.mark.parametrize("seed", range(3))
def test_each_row_is_the_models_own_norm_and_head_on_the_states_of_that_layer(seed: int) -> None:
    model = random_model(seed, num_hidden_layers=5)
    decoder, maps = transfer(layered_runner_for(model), seed)
    decoder.watch(lens=True)
    steps = run(decoder, PROMPT, 20)
    assert tokens_of(steps) == plain(model, PROMPT, 20)
    assert steps[0].lens is None, "nothing was guessed before the first pass"
    text = [*PROMPT]
    for before, step in pairwise(steps):
        text += before.tokens
        assert step.lens is not None
        assert step.lens.after == text[-1]
        assert step.lens.layers == tuple(range(maps.layers[0], 6))
        with torch.inference_mode():
            slow = [model.lm_head(states) for states in pseudo_states(model, text[:-1], maps)[maps.layers[0] :]]
        for row, logits in zip(step.lens.rows, slow, strict=True):
            assert row == tuple(logits.argmax(-1).tolist())
        assert step.draft is not None
        if step.draft.tokens:
            assert step.lens.rows[-1][0] == step.draft.tokens[0], "the last layer is what was guessed"


def counted(calls: list[int], function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function, which notes how many hidden states it is given."""

    def called(states: torch.Tensor) -> torch.Tensor:
        calls.append(states[..., 0].numel())
        return function(states)

    return called


def test_while_nobody_looks_nothing_is_worked_out_and_looking_changes_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = layered_runner_for(random_model(1))
    decoder, _ = transfer(runner, 1)
    assert runner.loop is not None
    normed: list[int] = []
    read: list[int] = []
    monkeypatch.setattr(runner.loop, "final", counted(normed, runner.loop.final))
    monkeypatch.setattr(runner.loop, "read", counted(read, runner.loop.read))

    def answer(lens: bool) -> tuple[list[int], list[bool], Sequence[int], Sequence[int]]:
        normed.clear()
        read.clear()
        decoder.watch(lens)
        steps = run(decoder, PROMPT, 20)
        return tokens_of(steps), [step.lens is not None for step in steps], [*normed], [*read]

    text, shown, normed_closed, read_closed = answer(lens=False)
    assert not any(shown)
    assert len(normed_closed) == len(shown), "one norm a pass: that of its last layer"
    assert len(read_closed) == 2 * len(shown), "and two readings: slots, and the guesses"
    watched_text, watched_shown, *_ = answer(lens=True)
    assert (watched_text, watched_shown) == (text, [False, *[True] * (len(shown) - 1)])
    assert len(normed) > len(normed_closed)
    assert answer(lens=False)[2:] == (normed_closed, read_closed), "what was opened and closed costs nothing either"


def test_opening_and_closing_at_any_step_leaves_the_text_alone() -> None:
    model = random_model(2)
    decoder, _ = transfer(layered_runner_for(model), 2)
    tokens: list[int] = []
    opened: list[bool] = []
    shown: list[bool] = []
    for number, step in enumerate(decoder.run(PROMPT, Limits(24))):
        tokens += step.tokens
        shown.append(step.lens is not None)
        opened.append(number % 3 == 0)
        decoder.watch(opened[-1])
    assert tokens == plain(model, PROMPT, 24)
    assert shown == [False, False, *opened][: len(shown)], "what a pass was asked for is shown with the next one"


def test_a_last_slot_without_pseudo_rows_shows_none() -> None:
    decoder, _ = transfer(layered_runner_for(random_model(3)), 3, carriers=1)
    decoder.watch(lens=True)
    steps = run(decoder, PROMPT, 24)
    for before, step in pairwise(steps):
        assert (step.lens is not None) == (len(before.tokens) == 1)
