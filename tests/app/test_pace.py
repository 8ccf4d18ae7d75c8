"""Who watches an answer pauses it, steps through it and sets its pace; what is typed goes to the prompt."""

import pytest

from ladechat.protocol import Pace, Stop, Watch
from ladechat.session.change import RATES
from ladechat.session.engine import State
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import SHOWN_ANSWER, Driver, Stage, ask, entries, footer_has_room, footer_names
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until

HINT = "paused · Space goes on · → one pass · ← back"


def paces(stage: Stage) -> list[Pace]:
    """All that the engine was told about its pace."""
    return [command for command in stage.engine.commands if isinstance(command, Pace)]


async def answering(pilot: Driver, stage: Stage, steps: int = 2) -> None:
    """An answer is under way, so many steps of it are seen, and the engine waits for nothing but its pace."""
    async with brings(lambda: stage.activity == "answering …" and "The" in stage.text, pilot):
        await ask(pilot, "One?")
        stage.engine.release(steps)
    await until(lambda: stage.pace_has_keys, pilot)


async def paused(pilot: Driver, stage: Stage) -> None:
    await answering(pilot, stage)
    await press(pilot, "space", brings=lambda: HINT in stage.status and stage.engine.pace == 0)
    stage.engine.release()


def held() -> Stage:
    return Stage(FakeEngine(hold_steps=True))


async def test_the_right_arrow_takes_one_step_while_paused_and_none_while_not() -> None:
    async with held().running() as (pilot, stage):
        await answering(pilot, stage)
        async with brings(lambda: HINT in stage.status and stage.engine.pace == 0, pilot):
            await pilot.press("right")
            await pilot.press("space")
        assert paces(stage) == [Pace(steps_per_second=0)]
        stage.engine.release()
        steps = stage.engine.steps_done
        for more in (1, 2, 3):
            await press(pilot, "right", brings=lambda: stage.engine.steps_done == steps + more)
        assert paces(stage)[1:] == [Pace(steps_per_second=0, step=True)] * 3
        assert HINT in stage.status


async def test_a_pause_ends_with_its_answer() -> None:
    async with held().running() as (pilot, stage):
        await paused(pilot, stage)
        while stage.asking:
            before = stage.engine.steps_done
            await press(pilot, "right", brings=lambda: stage.engine.steps_done > before or not stage.asking)
        assert "paused" not in stage.status and not stage.session.pace.paused
        await ask(pilot, "Two?", brings=lambda: len(stage.asked) == 2 and not stage.asking)


async def test_brackets_walk_through_the_table_of_rates_and_the_status_line_says_which() -> None:
    async with held().running(size=(120, 40)) as (pilot, stage):
        await answering(pilot, stage)
        for rate in RATES[-2::-1]:
            shown = f"answering … · {rate:g} pass" + "es" * (rate != 1) + "/s"
            await press(pilot, "[", brings=lambda: shown in stage.status)
            assert stage.session.pace.rate == rate
        await pilot.press("[")
        for wanted in RATES[1:]:
            await press(pilot, "]", brings=lambda: stage.session.pace.rate == wanted)
        await pilot.press("]")
        told = [pace.steps_per_second for pace in paces(stage)]
        assert told == [*RATES[-2::-1], *RATES[1:]], "at an end of the table nothing is said"
        await until(lambda: "/s" not in stage.status, pilot)


async def test_f6_is_four_steps_a_second_and_back_also_between_answers() -> None:
    async with Stage().ready() as (pilot, stage):
        await press(pilot, "f6", brings=lambda: "ready · 4 passes/s" in stage.status)
        await press(pilot, "f6", brings=lambda: "/s" not in stage.status)
        await until(lambda: paces(stage) == [Pace(steps_per_second=4), Pace()], pilot)


async def test_space_pauses_the_engine_and_goes_on_at_the_rate_that_was_kept_or_set_meanwhile() -> None:
    async with held().running() as (pilot, stage):
        await paused(pilot, stage)
        assert SHOWN_ANSWER not in stage.text and stage.prompt == ""
        assert paces(stage) == [Pace(steps_per_second=0)]
        await press(pilot, "f6", "]", brings=lambda: f"{HINT} · 8 passes/s" in stage.status)
        assert stage.engine.pace == 0
        await press(pilot, "space", brings=lambda: not stage.asking)
        assert SHOWN_ANSWER in stage.text and stage.engine.pace == 8 and "paused" not in stage.status


async def test_what_is_typed_goes_to_the_prompt_unless_it_is_empty_and_an_answer_is_under_way() -> None:
    async with held().ready() as (pilot, stage):
        await press(pilot, "[", "space", "]", brings=lambda: stage.prompt == "[ ]")
        stage.app.query_one(Prompt).clear()
        await answering(pilot, stage)
        await press(pilot, "a", "space", "[", "left", "right", "]", brings=lambda: stage.prompt == "a []")
        assert paces(stage) == []
        await press(pilot, "enter", brings=lambda: "1 question waits" in stage.status)
        await press(pilot, "space", brings=lambda: f"{HINT} · 1 question waits" in stage.status)


async def test_escape_stops_at_what_is_seen_and_ends_the_pause() -> None:
    async with held().running() as (pilot, stage):
        await paused(pilot, stage)
        seen = stage.engine.steps_done
        await press(pilot, "escape", brings=lambda: not stage.asking)
        assert stage.engine.steps_done == seen and SHOWN_ANSWER not in stage.text
        assert [each for each in stage.engine.commands if not isinstance(each, Watch)][-2:] == [Stop(), Pace()]
        assert "paused" not in stage.status


async def test_a_paused_engine_is_not_taken_for_a_stuck_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with held().running() as (pilot, stage):
        await paused(pilot, stage)
        monkeypatch.setattr("ladechat.session.replaceable_engine.SILENCE_SECONDS", dict.fromkeys(State, -1.0))
        assert stage.session.stuck_for() is None
        async with brings(lambda: not stage.session.pace.paused, pilot):
            stage.engine.hold()
            await pilot.press("space")
        assert stage.session.stuck_for() is not None


async def test_a_new_engine_keeps_the_rate_but_no_pause() -> None:
    async with Stage(FakeEngine(hold_steps=True), FakeEngine()).running() as (pilot, stage):
        await paused(pilot, stage)
        await press(pilot, "f6", "f5", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")
        assert paces(stage) == [Pace(steps_per_second=4)]
        assert "ready · 4 passes/s" in stage.status


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_footer_has_room_for_the_keys_of_the_pace_while_they_act(size: tuple[int, int]) -> None:
    async with held().running(size=size) as (pilot, stage):

        def names() -> list[str]:
            return footer_names(stage.app)

        await paused(pilot, stage)
        wide = size[0] > 80
        pace = ["Stop", "Go on", "One pass" if wide else "Pass", "Slower", "Faster"]
        expected = [*pace, "Decoder", "Slow", *(["Explain"] if wide else []), "Quit", "palette"]
        await until(lambda: names() == expected, pilot)
        assert footer_has_room(stage.app)
        await press(pilot, "x", brings=lambda: "Go on" not in names() and "Send" in names())
        await press(pilot, "backspace", brings=lambda: names() == expected)


async def test_the_palette_has_the_pace_in_an_answer_and_the_footer_unless_its_keys_would_be_typed() -> None:
    async with held().ready() as (pilot, stage):

        def in_footer() -> bool:
            bindings = stage.app.screen.active_bindings.values()
            return any(active.binding.show and active.binding.action == "pause" for active in bindings)

        assert not {"Pause", "One pass", "Slower", "Faster"} & entries(stage.app).keys()
        await answering(pilot, stage)
        assert {"Pause", "Slower", "Faster"} <= entries(stage.app).keys() and "One pass" not in entries(stage.app)
        assert in_footer()
        async with brings(lambda: not in_footer(), pilot):
            await pilot.press("x")
            stage.app.query_one(Transcript).focus()
        await press(pilot, "space", brings=lambda: stage.prompt == "x " and not stage.session.pace.paused)
        await press(pilot, "backspace", "backspace", brings=in_footer)
