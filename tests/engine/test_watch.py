"""What an engine works out for eyes alone: from when it is told that somebody looks, until nobody does."""

from pathlib import Path

from ladechat.protocol import Configure, Settings, SettingsApplied, Step, Watch
from tests.engine.inside import inside
from tests.llama2 import save_checkpoint
from tests.made_up_maps import save_made_up

QUESTION = "What is it?"


def with_lens(steps: list[Step]) -> list[bool]:
    return [step.lens is not None for step in steps]


def test_pseudo_states_are_shown_while_somebody_looks_and_the_text_is_the_same(tmp_path: Path) -> None:
    save_made_up(save_checkpoint(tmp_path))
    with inside(tmp_path, Settings(decoder="hidden_transfer")) as wire:
        closed, end = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(with_lens(closed))
        wire.send(Watch(lens=True))
        opened, opened_end = wire.ask(QUESTION, max_new_tokens=12)
        assert with_lens(opened) == [False, *[True] * (len(opened) - 1)]
        assert opened_end.token_ids == end.token_ids
        for step in opened[1:]:
            assert step.lens is not None and step.draft is not None
            assert step.lens.layers[-1] == wire.ready.layers
            assert len(step.lens.rows[-1]) == 3
            assert step.lens.row_ids[-1][0] in step.draft.token_ids or not step.draft.token_ids
        wire.send(Configure(decoder="autoregressive"))
        wire.until(SettingsApplied)
        plain, plain_end = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(with_lens(plain)) and plain_end.token_ids == end.token_ids
        wire.send(Configure(decoder="hidden_transfer"))
        wire.send(Watch(lens=False))
        wire.until(SettingsApplied)
        again, again_end = wire.ask(QUESTION, max_new_tokens=12)
        assert not any(with_lens(again)) and again_end.token_ids == end.token_ids
