"""The logic of a race: both clocks end with whole answers, the order is kept, and the seal tells the truth."""

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from ladechat import catalog
from ladechat.protocol import Event, Failed, Message, Ready, Settings, Step, TurnFinished
from ladechat.protocol.events import FailureCode, FinishReason
from ladechat.session.measuring import DEFAULT_DECODERS, Measuring, problem
from ladechat.session.playing import Clock, Track
from ladechat.session.race import (
    DISTURBED,
    Lane,
    conclusions,
    first_difference,
    measured_time,
    passes_saved,
    seal,
    speedup,
    why_auto_lost,
)
from tests.fake_engine import FakeEngine
from tests.widgets.sample_steps import finished, step

QUESTION = [Message(role="user", content="What is the n-gram pool?")]


def lane(name: str, pieces: list[list[str]], ms: list[float] | None = None, reason: FinishReason = "eos") -> Lane:
    """A lane whose answer came in these groups of tokens."""
    times = ms or [10.0] * len(pieces)
    steps = [step(each, index=index) for index, each in enumerate(pieces)]
    steps = [replace(one, timing=replace(one.timing, step_ms=took)) for one, took in zip(steps, times, strict=True)]
    return Lane(name, catalog.DECODERS[name].label, Settings(), steps, replace(finished(steps), reason=reason))


LETTERS = [" a", " b", " c"]
answers = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=12)


@st.composite
def groups(draw: st.DrawFn, answer: list[str]) -> list[list[str]]:
    """An answer, cut into steps of at least one token."""
    cuts = sorted(draw(st.sets(st.integers(1, len(answer) - 1)))) if len(answer) > 1 else []
    return [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]


@st.composite
def races(draw: st.DrawFn) -> list[Lane]:
    answer = draw(answers)
    lanes = []
    for name in DEFAULT_DECODERS[: draw(st.integers(2, 4))]:
        pieces = draw(groups(answer))
        times = draw(st.lists(st.floats(0.01, 1000), min_size=len(pieces), max_size=len(pieces)))
        lanes.append(lane(name, pieces, times))
    return lanes


@given(races(), st.sampled_from(Clock), st.lists(st.floats(0, 30), max_size=30))
def test_on_both_clocks_all_steps_come_in_order(lanes: list[Lane], clock: Clock, ticks: list[float]) -> None:
    track = Track(lanes)
    while track.clock is not clock:
        track.change_clock()
    now, before = 0.0, [0] * len(lanes)
    for passed in [0.0, *ticks, 1e9]:
        now += passed
        track.advance(now)
        done = [track.steps_done(number) for number in range(len(lanes))]
        assert all(earlier <= later for earlier, later in zip(before, done, strict=True))
        before = done
    assert before == [len(each.steps) for each in lanes]
    assert track.at_end and not track.playing


@given(races(), st.sampled_from(Clock))
def test_stepping_shows_each_step_once_and_back_again(lanes: list[Lane], clock: Clock) -> None:
    track = Track(lanes)
    while track.clock is not clock:
        track.change_clock()
    track.seek(0.0)
    seen = []
    while not track.at_end:
        track.step_forward()
        seen.append([track.steps_done(number) for number in range(len(lanes))])
    assert seen[-1] == [len(each.steps) for each in lanes]
    assert all(sum(one) < sum(other) for one, other in pairwise(seen))
    for earlier in reversed([[0] * len(lanes), *seen[:-1]]):
        track.step_back()
        assert [track.steps_done(number) for number in range(len(lanes))] == earlier


def test_a_pass_is_a_tick_on_one_clock_and_takes_its_time_on_the_other() -> None:
    track = Track([lane("autoregressive", [[" a"], [" b"]], [10, 10]), lane("lookahead", [[" a", " b"]], [30])])
    track.seek(1)
    assert (track.steps_done(0), track.steps_done(1)) == (1, 1)
    track.change_clock()
    assert track.end == pytest.approx(0.03)
    track.seek(0.025)
    assert (track.steps_done(0), track.steps_done(1)) == (2, 0)


def test_a_change_of_clock_keeps_how_far_one_is() -> None:
    track = Track([lane("autoregressive", [[" a"]] * 4), lane("lookahead", [[" a"] * 4])])
    track.seek(2)
    track.change_clock()
    assert track.at / track.end == pytest.approx(0.5)
    track.seek(track.end)
    track.change_clock()
    assert track.at == track.end == 4


def test_a_race_of_a_split_second_begins_in_slow_motion_and_a_long_one_at_its_own_pace() -> None:
    speeds = []
    for ms in (100, 1000, 100_000):
        track = Track([lane("autoregressive", [[" a"]] * 2, [ms] * 2)])
        track.change_clock()
        speeds.append(track.speed)
    assert speeds == [0.1, 0.25, 1.0]


# --- the seal ---------------------------------------------------------------------------------------------------------


@given(races())
def test_the_same_tokens_in_other_steps_are_sealed(lanes: list[Lane]) -> None:
    count = len(lanes[0].token_ids)
    assert seal(lanes) == f"✓ {count} of {count} tokens identical"


@given(st.data(), answers, st.integers(0, 11))
def test_another_token_breaks_the_seal_where_it_stands(data: st.DataObject, answer: list[str], place: int) -> None:
    place %= len(answer)
    other = [*answer]
    other[place] = " other"
    plain = lane("autoregressive", [[piece] for piece in answer])
    looked_ahead = lane("lookahead", data.draw(groups(other)))
    assert first_difference(plain, looked_ahead) == place
    told = seal([looked_ahead, plain])
    assert told.startswith(f"✗ The first difference is at token {place + 1}: plain decoding has “{answer[place]}” (")
    assert "lookahead has “ other” (" in told and "identical" not in told


def with_logprobs(one: Lane, logprobs: list[float]) -> Lane:
    one.steps = [replace(each, logprobs=[log]) for each, log in zip(one.steps, logprobs, strict=True)]
    return one


@pytest.mark.parametrize(("other", "ending"), [(-0.75, ": a near tie."), (-3.0, ": no near tie.")])
def test_a_difference_is_called_a_near_tie_by_what_the_steps_say(other: float, ending: str) -> None:
    plain = with_logprobs(lane("autoregressive", [[" a"], [" b"]]), [0.0, -0.69])
    looked_ahead = with_logprobs(lane("lookahead", [[" a"], [" c"]]), [0.0, other])
    told = seal([plain, looked_ahead])
    assert "plain decoding has “ b” (50.2 %)" in told and told.endswith(ending)


def test_where_tokens_are_drawn_nothing_is_said_of_ties() -> None:
    plain, looked_ahead = lane("autoregressive", [[" a"]]), lane("lookahead", [[" b"]])
    looked_ahead.settings = Settings(temperature=0.7)
    assert "tie" not in seal([plain, looked_ahead])


def test_an_answer_that_ends_early_differs_where_it_ends() -> None:
    plain, short = lane("autoregressive", [[" a"], [" b"]]), lane("lookahead", [[" a"]])
    assert "at token 2: lookahead ends before it, plain decoding goes on with “ b”" in seal([plain, short])


def test_of_an_answer_that_was_stopped_only_what_there_is_is_compared() -> None:
    plain, stopped = lane("autoregressive", [[" a"], [" b"]]), lane("lookahead", [[" a"]], reason="stopped")
    assert seal([plain, stopped]).startswith("The first 1 tokens are identical")
    assert seal([plain]) == seal([]) == "Nothing to compare: fewer than two decoders have answered."
    assert passes_saved([plain, stopped]) == "" == measured_time([plain, stopped])


def test_passes_come_first_then_time_each_in_its_order() -> None:
    lanes = [
        lane("autoregressive", [[" a"]] * 4, [10] * 4),
        lane("lookahead", [[" a"] * 2] * 2, [10] * 2),
        lane("auto", [[" a"] * 4], [80]),
    ]
    assert passes_saved(lanes) == "Passes saved of 4: auto 3 · lookahead 2"
    assert (
        measured_time(lanes)
        == "Tokens a pass ÷ cost of a pass = speed, plain 1×: lookahead 2.00 ÷ 1.00 ≈ 2.00× · auto 4.00 ÷ 8.00 ≈ 0.50×"
    )
    assert speedup(lanes[1], lanes[1:]) is None


def test_a_gain_beyond_the_tokens_a_pass_is_called_a_disturbance_and_no_speed_is_shown() -> None:
    plain, quicker = lane("autoregressive", [[" a"]] * 4, [90] * 4), lane("lookahead", [[" a"] * 2] * 2, [10] * 2)
    assert measured_time([plain, quicker]) == DISTURBED and "×" not in DISTURBED
    assert speedup(quicker, [plain, quicker]) is None


@pytest.mark.parametrize(("cost", "tokens"), [(80, 2), (80, 1)])
def test_a_race_that_auto_loses_says_what_its_drafts_cost_and_brought(cost: float, tokens: int) -> None:
    plain = lane("autoregressive", [[" a"]] * 4, [10] * 4)
    auto = lane("auto", [[" a"] * tokens, *[[" a"]] * (4 - tokens)], [cost, *[10.0] * (4 - tokens)])
    auto.steps[1:] = [replace(one, timing=replace(one.timing, slots=1)) for one in auto.steps[1:]]
    text = f"1 of its {5 - tokens} passes had drafts: such a pass took 8.0 plain ones and brought {tokens}.0 tokens."
    assert why_auto_lost([plain, auto]).endswith(text) and why_auto_lost([plain, auto]) in conclusions([plain, auto])


def test_nothing_is_explained_where_auto_has_won_or_took_no_part() -> None:
    plain, quick = lane("autoregressive", [[" a"]] * 4, [10] * 4), lane("auto", [[" a"] * 2] * 2, [10] * 2)
    slow = lane("lookahead", [[" a"] * 2] * 2, [40] * 2)
    assert why_auto_lost([plain, quick, slow]) == why_auto_lost([plain, slow]) == why_auto_lost([quick]) == ""


# --- measuring --------------------------------------------------------------------------------------------------------


class Watched(FakeEngine):
    """An engine that may be stopped by the test behind one of its events."""

    stop_behind: type[Event] | None = None
    measuring: Measuring

    async def events(self) -> AsyncIterator[Event]:
        async for event in super().events():
            yield event
            if self.stop_behind is not None and isinstance(event, self.stop_behind):
                self.stop_behind = None
                await self.measuring.stop()


def measuring(engine: FakeEngine, names: tuple[str, ...] | None = None) -> Measuring:
    return Measuring(engine, QUESTION, names)


async def test_every_decoder_answers_the_same_question_alone_and_with_nothing_learnt() -> None:
    engine = FakeEngine()
    race = measuring(engine)
    await race.run()
    assert [one.name for one in race.lanes] == list(DEFAULT_DECODERS)
    assert all(one.whole for one in race.lanes) and race.failure is None and engine.closed
    assert engine.commands == engine.questions and [one.decoder for one in engine.questions] == list(DEFAULT_DECODERS)
    assert all((one.fresh, one.seed, one.messages) == (True, 0, QUESTION) for one in engine.questions)
    count = len(race.lanes[0].token_ids)
    assert seal(race.lanes) == f"✓ {count} of {count} tokens identical"


async def test_the_seed_that_was_given_is_that_of_all_lanes() -> None:
    engine = FakeEngine(Settings(seed=7))
    await measuring(engine, ("auto", "lookahead")).run()
    assert {one.seed for one in engine.questions} == {7}


class WithoutMaps(FakeEngine):
    """An engine whose model has no maps for hidden transfer."""

    async def events(self) -> AsyncIterator[Event]:
        async for event in super().events():
            if isinstance(event, Ready):
                event = replace(event, decoders=[info for info in event.decoders if info.name != "hidden_transfer"])
            yield event


async def test_without_trained_maps_the_usual_lanes_are_three_and_asking_for_more_is_refused() -> None:
    usual = measuring(WithoutMaps())
    await usual.run()
    assert [one.name for one in usual.lanes] == ["autoregressive", "lookahead", "auto"]
    asked_for = measuring(WithoutMaps(), ("auto", "hidden_transfer"))
    await asked_for.run()
    assert asked_for.refused and asked_for.lanes == []
    assert (asked_for.failure or "").startswith("hidden transfer is not offered for this model; choose among auto, ")


async def test_a_model_of_one_token_a_pass_has_no_race() -> None:
    for names in (None, ("autoregressive", "lookahead")):
        engine = FakeEngine()
        engine.single_token = "Its cache cannot go back."
        race = measuring(engine, names)
        await race.run()
        assert race.refused and race.failure is not None and race.failure.endswith("Its cache cannot go back.")
        assert engine.questions == [] and engine.closed


async def test_a_stop_keeps_what_was_measured() -> None:
    engine = Watched(hold_steps=True)
    engine.release(3)
    engine.stop_behind, engine.measuring = Step, measuring(engine)
    await engine.measuring.run()
    first = engine.measuring.lanes[0]
    assert isinstance(first.finished, TurnFinished) and first.finished.reason == "stopped" and not first.whole
    assert len(first.steps) == 3 and len(engine.questions) == 1
    assert engine.measuring.failure is None and not engine.measuring.running


async def test_an_engine_that_ends_without_a_word_ends_the_race_in_a_sentence() -> None:
    engine = FakeEngine(hold_loading=True)
    engine.die()
    engine.last_line = "ImportError: libtorch_cpu.so"
    race = measuring(engine)
    await race.run()
    assert race.failure == "The engine ended before the race did. Its log ends: ImportError: libtorch_cpu.so"


async def test_what_the_engine_says_of_its_failure_is_passed_on() -> None:
    engine = FakeEngine()
    engine.fail_next = "message_too_long"
    race = measuring(engine)
    await race.run()
    assert race.failure == "It is too long. Shorten it." and not race.refused
    assert not race.running and engine.closed


@pytest.mark.parametrize("code", ["internal", "out_of_memory", "pool_file", "bad_command"])
async def test_a_failure_that_is_not_an_answers_does_not_end_the_race(code: FailureCode) -> None:
    """As a line that was left out, or first passes that were too large for the memory."""
    engine = FakeEngine(hold_loading=True)
    await engine.start()
    engine._say(Failed(code=code, message="Something.", hint="Look."))
    engine.finish_loading()
    race = measuring(engine)
    await race.run()
    assert race.failure is None and len(race.lanes) == 4


@pytest.mark.parametrize(
    ("names", "said"),
    [(("auto",), "not 1"), (("auto", "magic"), "no decoder 'magic'"), (tuple(catalog.DECODERS)[:5], "not 5")],
)
def test_too_few_too_many_and_unknown_decoders_are_named(names: tuple[str, ...], said: str) -> None:
    assert said in (problem(names) or "")
    assert problem(("autoregressive", "lookahead")) is None
