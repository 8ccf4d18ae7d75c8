"""A race from the chat: on what is typed or on the last question, and back."""

import pytest

from ladechat.protocol import Generate
from ladechat.screens.race import RaceScreen
from tests.app.stage import Driver, Stage, answered, ask, opens
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import brings, until


async def raced(pilot: Driver, stage: Stage) -> RaceScreen:
    async with opens(pilot, RaceScreen):
        await pilot.press("f9")
    screen = stage.app.screen
    assert isinstance(screen, RaceScreen)
    await until(lambda: screen.track is not None, pilot)
    return screen


async def test_f9_races_on_the_last_question_and_nothing_in_the_chat_is_lost() -> None:
    stage = Stage(FakeEngine(answers=(ANSWER,)), FakeEngine(), system="Be brief.")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        async with brings(lambda: stage.prompt == "/nosuch", pilot):
            await ask(pilot, "/nosuch")
        before, commands = stage.text, list(stage.engines[0].commands)
        screen = await raced(pilot, stage)
        asked = stage.engine.questions[-1].messages
        assert [(one.role, one.content) for one in asked if one.role != "assistant"] == [
            ("system", "Be brief."),
            ("user", "One?"),
            ("user", "Two?"),
        ]
        assert len(asked) == 4 and screen.race.question == "Two?"
        async with brings(lambda: stage.app.screen is stage.screen and stage.engine.closed, pilot):
            await pilot.press("escape")
        assert stage.prompt == "/nosuch"
        assert stage.text == before and stage.engines[0].commands == commands
        async with brings(lambda: stage.prompt == "", pilot):
            await pilot.press("ctrl+u")
        await answered(pilot, stage, "Three?", times=3)
        assert isinstance(stage.engines[0].commands[-1], Generate)


async def test_f9_races_on_what_is_typed_and_leaves_it_there() -> None:
    stage = Stage(FakeEngine(), FakeEngine())
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await pilot.press(*"Why")
        screen = await raced(pilot, stage)
        assert screen.race.question == "Why"
        async with brings(lambda: stage.app.screen is stage.screen, pilot):
            await pilot.press("escape")
        assert stage.prompt == "Why"


@pytest.mark.full
async def test_race_with_a_question_races_on_that() -> None:
    stage = Stage(FakeEngine(), FakeEngine())
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with opens(pilot, RaceScreen):
            await ask(pilot, "/race Why W?")
        assert isinstance(stage.app.screen, RaceScreen) and stage.app.screen.race.question == "Why W?"


async def test_f9_without_a_question_and_during_an_answer_says_what_to_do() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: "Type a question first" in stage.notice, pilot):
            await pilot.press("f9")
        options = "/race --decoders lookahead,suffix Why?"
        async with brings(lambda: stage.prompt == options, pilot):
            await ask(pilot, options)
        assert "ladechat race --decoders" in stage.notice
        async with brings(lambda: stage.notice == "Stop the answer first (Esc).", pilot):
            await pilot.press("ctrl+u")
            await pilot.press(*"Why", "enter", "f9")
        assert stage.app.screen is stage.screen
