"""Turns of an engine process: answers step by step, settings that change on the way, a stop, and what is refused."""

from pathlib import Path

import pytest

from ladechat import catalog
from ladechat.protocol import (
    Configure,
    Failed,
    Generate,
    SettingsApplied,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
    credible_speedup,
    encode,
)
from tests.engine.inside import Inside, inside
from tests.engine.messages import user
from tests.llama2 import save_checkpoint
from tests.made_up_costs import MadeUpCosts, moderate

QUESTION = user("What is the n-gram pool?")
LONG = user("Explain the Jacobi iteration in simple words.")
LIMIT = 40
"""Tokens of an answer whose end does not matter."""


def test_what_the_engine_takes_is_told_behind_each_answer(engine: Inside) -> None:
    _, finished = engine.ask(QUESTION, max_new_tokens=3)
    memory = finished.memory
    assert memory is not None and memory.cache_bytes is not None
    assert (memory.resident_bytes or memory.peak_bytes or 0) > memory.cache_bytes > 0
    assert memory.device_bytes is None and memory.reserved_bytes is None


def test_pieces_concatenate_to_the_text(engine: Inside) -> None:
    steps, finished = engine.ask(QUESTION)
    assert finished.reason == "eos"
    assert "".join(piece for step in steps for piece in step.pieces) == finished.text
    assert [token for step in steps for token in step.token_ids] == finished.token_ids
    assert [step.index for step in steps] == list(range(finished.steps))
    assert finished.steps < len(finished.token_ids)
    [began] = engine.of_turn(TurnStarted, finished.turn)
    assert began.messages == [QUESTION]
    assert isinstance(engine.seen[-1], TurnFinished)


def test_auto_writes_the_same_and_gives_way_to_fixed_numbers_in_the_middle_of_an_answer(
    engine: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoders = engine.service.decoders
    monkeypatch.setattr(decoders.shared, "costs", MadeUpCosts(moderate))  # drafts pay, whatever a clock says
    monkeypatch.setattr(decoders, "_made", {})
    expected = engine.ask(LONG, max_new_tokens=LIMIT)[1].token_ids
    engine.send(Configure(decoder="auto"))
    assert engine.until(SettingsApplied).settings.parameters == {}
    steps, finished = engine.ask(LONG, max_new_tokens=LIMIT)
    assert finished.token_ids == expected
    assert len({step.timing.slots for step in steps}) > 1
    turn = engine.begin(LONG, max_new_tokens=LIMIT)
    engine.send(Configure(decoder="lookahead"))
    applied = engine.until(SettingsApplied).settings.parameters
    assert (applied["window"], applied["ngram"], applied["guesses"]) == (5, 3, 5)
    engine.go_on()
    assert engine.until(TurnFinished).token_ids == expected
    own = [step.window for step in engine.of_turn(Step, turn)][-3:]
    assert [len(view.fresh) for view in own if view] == [5, 5, 5]


def test_a_parameter_that_was_given_counts_for_all_decoders_and_a_default_for_its_own(
    tmp_path: Path,
) -> None:
    with inside(save_checkpoint(tmp_path)) as wire:
        assert wire.ready.settings.parameters == catalog.resolved("lookahead", {})
        for change, expected in (
            (Configure(decoder="prompt_lookup"), {"window": 10, "ngram": 3}),
            (Configure(decoder="jacobi"), {"window": 5}),
            (Configure(parameters={"window": 7}), {"window": 7}),
            (Configure(decoder="prompt_lookup", parameters={"ngram": 4}), {"window": 7, "ngram": 4}),
            (Configure(temperature=0.5), {"window": 7, "ngram": 4}),
            (Configure(decoder="lookahead", temperature=0.0), catalog.resolved("lookahead", {"window": 7, "ngram": 4})),
        ):
            wire.send(change)
            assert wire.until(SettingsApplied).settings.parameters == expected


def test_settings_change_between_two_steps_of_a_running_answer(engine: Inside) -> None:
    expected = engine.ask(LONG, max_new_tokens=LIMIT)[1].token_ids
    turn = engine.begin(LONG, max_new_tokens=LIMIT)

    def step_with(change: Configure) -> Step:
        engine.send(change)
        engine.until(SettingsApplied)
        return engine.step()

    larger = step_with(Configure(parameters={"window": 9, "ngram": 4})).window
    assert larger is not None and (len(larger.fresh), len(larger.rows) + 1) == (9, 4)
    assert step_with(Configure(parameters={"guesses": 2})).window is not None
    assert step_with(Configure(decoder="suffix")).window is None
    assert step_with(Configure(decoder="autoregressive")).timing.slots == 1
    assert step_with(Configure(decoder="lookahead")).window is not None
    engine.go_on()
    assert engine.finish(turn)[1].token_ids == expected
    applied = [event.settings for event in engine.seen if isinstance(event, SettingsApplied)]
    assert applied[-1].parameters == catalog.resolved("lookahead", {"window": 9, "ngram": 4, "guesses": 2})


def test_a_stop_that_comes_with_the_question_is_not_lost(engine: Inside) -> None:
    engine.send(encode(Generate(turn=998, messages=[LONG])) + encode(Stop()))
    assert engine.until(TurnFinished).reason == "stopped"


def test_one_message_too_long_is_refused_with_the_numbers(engine: Inside) -> None:
    turn = engine.generate("pool " * 3000)
    failed = engine.until(Failed)
    assert (failed.code, failed.turn, failed.fatal) == ("message_too_long", turn, False)
    assert "2,048" in failed.message
    assert engine.ask(QUESTION, max_new_tokens=3)[1].reason == "max_new_tokens"


def test_the_estimate_is_the_sum_of_what_the_steps_say(engine: Inside) -> None:
    steps, finished = engine.ask(LONG)
    assert all(step.timing.plain_ms for step in steps)
    plain = sum(len(step.token_ids) * (step.timing.plain_ms or 0) for step in steps)
    speedup = plain / sum(step.timing.step_ms for step in steps)
    estimate = credible_speedup(speedup, len(finished.token_ids) / finished.steps)  # none on a busy machine
    assert finished.estimated_speedup == (None if estimate is None else pytest.approx(estimate, rel=1e-3))
    assert finished.decode_seconds == pytest.approx(sum(step.timing.step_ms for step in steps) / 1000, rel=1e-3)
