"""A race from the chat: on what is typed or on the last question, and back."""

import pytest

from ladechat.protocol import Stop
from ladechat.screens.race import RaceScreen
from ladechat.session.engine import SILENCE_SECONDS, State
from ladechat.widgets.bars.seek_bar import Transport
from ladechat.widgets.race import Remarks
from tests.app.stage import Driver, Stage, answered, ask, shows
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import act, brings, press, until


async def racing(pilot: Driver, *keys: str) -> RaceScreen:
    """Press keys that begin a race, and return its screen."""
    await press(pilot, *keys, brings=shows(pilot, RaceScreen))
    assert isinstance(pilot.app.screen, RaceScreen)
    return pilot.app.screen


async def raced(pilot: Driver, *keys: str) -> RaceScreen:
    """Press keys that begin a race, and wait until it can be watched."""
    screen = await racing(pilot, *keys)
    await until(lambda: screen.track is not None, pilot)
    return screen


async def test_f9_races_on_the_last_question_and_nothing_in_the_chat_is_lost() -> None:
    async with Stage(FakeEngine(answers=(ANSWER,)), system="Be brief.").running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        async with brings(lambda: stage.prompt == "/nosuch", pilot):
            await ask(pilot, "/nosuch")  # a command is not a question
        before = stage.text
        screen = await raced(pilot, "f9")
        asked = stage.engine.questions[-1].messages
        assert [(one.role, one.content) for one in asked if one.role != "assistant"] == [
            ("system", "Be brief."),
            ("user", "One?"),
            ("user", "Two?"),
        ]
        assert len(asked) == 4 and screen.race.question == "Two?"
        await press(pilot, "escape", brings=stage.in_front)
        assert stage.prompt == "/nosuch"
        assert stage.text.startswith(before) and "Race on ‘Two?’" in stage.text.removeprefix(before)
        assert stage.engine.settings == stage.session.requested
        await press(pilot, "ctrl+u", brings=lambda: stage.prompt == "")
        await answered(pilot, stage, "Three?", times=3)
        assert stage.engine.questions[-1].decoder is None and not stage.engine.questions[-1].fresh


async def test_f9_races_on_what_is_typed_and_leaves_it_there_and_a_command_races_on_its_question() -> None:
    async with Stage().ready() as (pilot, stage):
        typed, sent = [*"Why", "f9"], ["ctrl+u", *"/race Why W?", "enter"]
        for keys, question, left in ((typed, "Why", "Why"), (sent, "Why W?", "")):
            screen = await raced(pilot, *keys)
            assert screen.race.question == question
            await press(pilot, "escape", brings=stage.in_front)
            assert stage.prompt == left


async def test_f9_without_a_question_and_during_an_answer_says_what_to_do() -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        await press(pilot, "f9", brings=lambda: "Type a question first" in stage.notice)
        options = "/race --decoders lookahead,suffix Why?"
        await ask(pilot, options, brings=lambda: stage.prompt == options)
        assert "ladechat race --decoders" in stage.notice
        async with brings(lambda: stage.notice == "Stop the answer first (Esc).", pilot):
            await pilot.press("ctrl+u")
            await pilot.press(*"Why", "enter", "f9")
        assert stage.app.screen is stage.screen


async def test_f9_while_the_model_loads_races_as_soon_as_it_is_there() -> None:
    async with Stage(FakeEngine(hold_loading=True)).running() as (pilot, stage):
        screen = await racing(pilot, *"Why", "f9")
        await act(pilot, stage.engine.finish_loading, brings=lambda: screen.track is not None)
        assert len(screen.race.lanes) == 4 and len(stage.started) == 1
        await pilot.press("escape")
        await press(pilot, "enter", brings=lambda: stage.text.count(" tokens a pass") == 1)


async def test_leaving_in_the_middle_of_a_race_ends_its_turn_and_the_chat_goes_on() -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        screen = await racing(pilot, *"Why", "f9")
        await until(lambda: screen.race.lanes, pilot)
        await act(pilot, lambda: stage.engine.release(3), brings=lambda: screen.race.lanes[0].steps)
        await press(pilot, "ctrl+c", brings=lambda: stage.app.screen is stage.screen and not stage.session.racing)
        assert Stop() in stage.engine.commands and stage.prompt == "Why"
        stage.engine.release()
        await press(pilot, "enter", brings=lambda: stage.text.count(" tokens a pass") == 1)


async def test_f9_says_why_there_is_no_race_while_another_model_is_looked_for_or_the_engine_has_ended() -> None:
    other = FakeEngine(hold_loading=True)
    async with Stage(FakeEngine(), other).ready() as (pilot, stage):
        stage.session.use_model("owner/other", stage._new_engine)
        await press(pilot, *"Why", "f9", brings=lambda: "other is being looked for" in " ".join(stage.notices))
        stage.session.stop()
        await act(pilot, stage.engines[0].die, brings=lambda: stage.session.state is State.ENDED)
        await press(pilot, "f9", brings=lambda: "The engine has ended. F5" in " ".join(stage.notices))
        assert stage.app.screen is stage.screen and stage.prompt == "Why"


@pytest.mark.parametrize("measured", [False, True], ids=["loading", "measuring"])
async def test_an_engine_that_ends_in_a_race_is_said_at_once_with_the_way_back(measured: bool) -> None:
    stage = Stage(FakeEngine(hold_steps=True, hold_loading=not measured), FakeEngine())
    async with stage.app.run_test(size=(40, 10)) as pilot:
        screen = await racing(pilot, *"Why", "f9")
        if measured:
            async with brings(lambda: screen.race.lanes and screen.race.lanes[0].steps, pilot):
                stage.engine.release(3)
        remarks = screen.query_one("#race-remarks", Remarks)
        async with brings(lambda: any("F5 starts the engine" in one for one in remarks.sentences), pilot):
            stage.engine.die()
        assert remarks.sentences[0] == "The engine ended before the race did."
        shown = " ".join(" ".join(strip.text for strip in screen._compositor.render_strips()).split())
        assert " ".join(remarks.sentences[:2]) in shown
        await press(pilot, "escape", brings=stage.in_front)
        await until(lambda: "the engine has ended" in stage.activity, pilot)
        await press(pilot, "f5", brings=lambda: stage.activity == "ready")
        assert stage.prompt == "Why"


async def test_an_engine_that_is_silent_in_a_race_is_said_and_the_race_can_be_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        screen = await racing(pilot, *"Why", "f9")
        transport = screen.query_one(Transport)
        async with brings(lambda: transport.state.startswith("no word from the engine"), pilot):
            monkeypatch.setitem(SILENCE_SECONDS, State.ANSWERING, -1.0)
        await press(pilot, "escape", "escape", brings=stage.in_front)
