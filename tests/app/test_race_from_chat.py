"""A race from the chat: on what is typed or on the last question, and back."""

import pytest

from ladechat.screens.race import RaceScreen
from tests.app.stage import Driver, Stage, answered, ask, wait_until
from tests.fake_engine import ANSWER, FakeEngine


async def raced(pilot: Driver, stage: Stage) -> RaceScreen:
    await pilot.press("f9")
    await wait_until(pilot, lambda: isinstance(stage.app.screen, RaceScreen))
    screen = stage.app.screen
    assert isinstance(screen, RaceScreen)
    await wait_until(pilot, lambda: screen.track is not None)
    return screen


async def test_f9_races_on_the_last_question_and_nothing_in_the_chat_is_lost() -> None:
    stage = Stage(FakeEngine(answers=(ANSWER,)), system="Be brief.")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        await ask(pilot, "/nosuch")
        await wait_until(pilot, lambda: stage.prompt == "/nosuch")  # a command is not a question
        before = stage.text
        screen = await raced(pilot, stage)
        asked = stage.engine.questions[-1].messages
        assert [(one.role, one.content) for one in asked if one.role != "assistant"] == [
            ("system", "Be brief."),
            ("user", "One?"),
            ("user", "Two?"),
        ]
        assert len(asked) == 4 and screen.race.question == "Two?"
        await pilot.press("escape")
        await wait_until(pilot, lambda: stage.app.screen is stage.screen)
        assert stage.prompt == "/nosuch"
        await pilot.press("ctrl+u")
        assert stage.text == before and stage.engine.settings == stage.session.wished
        await answered(pilot, stage, "Three?", times=3)
        assert stage.engine.questions[-1].decoder is None and not stage.engine.questions[-1].fresh


async def test_f9_races_on_what_is_typed_and_leaves_it_there() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press(*"Why")
        screen = await raced(pilot, stage)
        assert screen.race.question == "Why"
        await pilot.press("escape")
        await wait_until(pilot, lambda: stage.app.screen is stage.screen)
        assert stage.prompt == "Why"


@pytest.mark.full
async def test_race_with_a_question_races_on_that() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await ask(pilot, "/race Why W?")
        await wait_until(pilot, lambda: isinstance(stage.app.screen, RaceScreen))
        assert isinstance(stage.app.screen, RaceScreen) and stage.app.screen.race.question == "Why W?"


async def test_f9_without_a_question_and_during_an_answer_says_what_to_do() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("f9")
        assert "Type a question first" in stage.notices[-1]
        options = "/race --decoders lookahead,suffix Why?"
        await ask(pilot, options)
        await wait_until(pilot, lambda: stage.prompt == options)
        assert "ladechat race --decoders" in stage.notices[-1]
        await pilot.press("ctrl+u")
        await pilot.press(*"Why", "enter", "f9")
        await wait_until(pilot, lambda: stage.notices[-1:] == ["Stop the answer first (Esc)."])
        assert stage.app.screen is stage.screen
