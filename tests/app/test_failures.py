"""Engines that fail, die, hang or are started again: no question and no answer is lost."""

import re
from functools import partialmethod

import pytest
from textual.widgets import OptionList

from ladechat import protocol
from ladechat.app import LadechatApp, run_chat
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Settings
from ladechat.screens.lists.models import ModelsScreen
from ladechat.session.conversations.conversation import UNANSWERED
from ladechat.session.engine import State
from tests.app.stage import SHOWN_ANSWER, Stage, answered, ask, begun, shows
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import act, brings, press, until


async def test_a_failed_turn_gives_the_question_back_and_the_next_one_is_answered() -> None:
    engine = FakeEngine()
    engine.fail_next = "message_too_long"
    async with Stage(engine).running() as (pilot, stage):
        await ask(pilot, "Far too long?", brings=lambda: stage.prompt == "Far too long?")
        assert "It is too long. Shorten it." in stage.text and not stage.asking
        await answered(pilot, stage, "Short?")
        assert [message.content for message in engine.questions[1].messages] == ["Short?"]


async def test_an_answer_that_breaks_off_loses_neither_its_question_nor_the_one_that_waits() -> None:
    engine = FakeEngine(hold_steps=True)
    async with Stage(engine).running() as (pilot, stage):
        async with brings(lambda: len(engine.questions) == 2, pilot):
            await ask(pilot, "First?")
            engine.release(2)
            await ask(pilot, "Second?")
            engine.hold()
            engine.break_off()
        assert "It broke. Try again." in stage.text and stage.prompt == "First?"
        await act(pilot, engine.release, brings=lambda: not stage.asking)
        assert [message.content for message in engine.questions[1].messages] == ["Second?"]
        assert [message.content for message in stage.session.conversation.messages][:1] == ["Second?"]


@pytest.mark.parametrize("again", [False, True], ids=["continued", "asked again"])
async def test_what_has_come_of_an_answer_stays_when_its_engine_dies_and_goes_on_or_is_replaced(again: bool) -> None:
    stage = Stage(FakeEngine(hold_steps=True), FakeEngine())
    async with stage.app.run_test() as pilot:
        async with brings(lambda: stage.engine.questions != [] and stage.asking, pilot):
            await ask(pilot, "One?")
            stage.engine.release(2)
        async with brings(lambda: "the engine has ended" in stage.activity, pilot):
            stage.engine.die()
        assert stage.prompt == "" and "2 passes" in stage.text and "stopped" in stage.text
        async with brings(lambda: len(stage.started) == 2 and stage.activity == "ready", pilot):
            await pilot.press("f5")
        async with brings(lambda: len(stage.engine.questions) == 1 and not stage.asking, pilot):
            await pilot.press("ctrl+r") if again else await ask(pilot, "/continue")
        assert stage.engine.questions[0].first_step == (0 if again else 2)
        assert [message.content for message in stage.session.conversation.messages] == ["One?", ANSWER]
        assert stage.text.count("One?") == 1 and SHOWN_ANSWER in stage.text


@pytest.mark.parametrize("how", ["died", "stopped", "refused"])
async def test_where_no_token_of_an_answer_came_the_one_before_does_not_go_on_in_its_place(how: str) -> None:
    async with Stage(FakeEngine(hold_steps=True), FakeEngine()).running() as (pilot, stage):
        await begun(pilot, stage, 2)
        await press(pilot, "escape", brings=lambda: not stage.asking)
        before = stage.session.conversation.messages
        stage.engine.fail_next = "message_too_long" if how == "refused" else None
        await ask(pilot, "Two?", brings=lambda: "Two?" in stage.text)
        await until(lambda: how == "refused" or len(stage.engine.questions) == 2, pilot)
        if how == "died":
            stage.engine.die()
            await until(lambda: not stage.asking, pilot)
            await pilot.press("f5")
        elif how == "stopped":
            await pilot.press("escape")
        await until(lambda: stage.prompt == "Two?" and stage.activity == "ready", pilot)
        async with brings(lambda: stage.notice == UNANSWERED, pilot):
            await stage.app.run_action("continue", stage.screen)
        assert stage.session.conversation.messages == before
        asked = len(stage.engine.questions)
        await press(pilot, "ctrl+r", brings=lambda: stage.prompt == "" and len(stage.engine.questions) == asked + 1)
        said = [message.content for message in stage.engine.questions[-1].messages]
        assert said == [*(message.content for message in before), "Two?"], "the answer before stays where it is"


async def test_a_question_given_back_does_not_overwrite_what_is_being_typed() -> None:
    async with Stage(FakeEngine(hold_loading=True)).running() as (pilot, stage):
        async with brings(lambda: "F5" in stage.text, pilot):
            await ask(pilot, "One?")
            await pilot.press("x")
            stage.engine.die()
        assert stage.prompt == "x"


async def test_when_the_engine_dies_the_conversation_goes_on_with_a_new_one() -> None:
    async with Stage(FakeEngine(), FakeEngine(hold_steps=True), FakeEngine()).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await act(pilot, stage.engine.die, brings=lambda: "The engine has ended." in stage.text and "F5" in stage.text)
        assert SHOWN_ANSWER in stage.text
        await ask(pilot, "Anyone there?", brings=lambda: stage.prompt == "Anyone there?")
        await press(pilot, "f5", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")

        async with brings(lambda: stage.engine.questions != [] and stage.asking, pilot):
            await ask(pilot, "Two?")
        async with brings(lambda: stage.prompt == "Two?", pilot):
            stage.engine.die()
        async with brings(lambda: len(stage.started) == 3, pilot):
            await pilot.press("f5")
        await answered(pilot, stage, "Two?", times=2)
        assert [message.content for message in stage.engine.questions[0].messages] == ["One?", ANSWER, "Two?"]


class Preparing(FakeEngine):
    """An engine that is still preparing a prompt, and then refuses the question."""

    def _work(self) -> None:
        """It does not come so far."""

    def refuse(self) -> None:
        """Say that no prompt can be made."""
        self._say(protocol.Failed(code="chat_template", message="It fails.", hint="Take another.", turn=1))


async def test_the_status_says_that_a_question_is_prepared_until_its_answer_begins_or_it_is_refused() -> None:
    async with Stage(engine := Preparing()).ready() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.activity == "preparing the question …")
        await act(pilot, engine.refuse, brings=lambda: stage.activity == "ready")


async def test_an_engine_that_says_nothing_for_long_is_noticed_until_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.activity == "answering …")
        limits = "ladechat.session.replaceable_engine.SILENCE_SECONDS"
        monkeypatch.setattr(limits, {State.ANSWERING: -1.0})
        stage.screen.silence.look()
        assert re.fullmatch(r"no word from the engine for \d+ s · F5 starts it again", stage.activity)
        monkeypatch.setattr(limits, {State.ANSWERING: 10.0})
        stage.screen.silence.look()
        assert stage.activity == "answering …"


async def test_a_reason_for_the_end_is_told_and_told_once_with_the_key_or_command_that_helps() -> None:
    async with Stage(FakeEngine(hold_loading=True), FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await until(lambda: bool(stage.started), pilot)
        await act(pilot, stage.engine.fail_fatally, brings=lambda: "The weights are torn. Mend them." in stage.text)
        assert "The engine has ended." not in stage.text
        assert stage.activity == "the engine has ended · F5 starts it again, /model NAME takes another model"
        await ask(pilot, "/model", brings=shows(pilot, ModelsScreen))
        listed = stage.app.screen.query_one(OptionList)
        await until(lambda: listed.option_count, pilot)
        assert "demo" in str(listed.options[0].prompt) and "now" not in str(listed.options[0].prompt)
        await press(pilot, "enter", brings=lambda: len(stage.started) == 2)
        async with brings(lambda: stage.activity == "the engine has ended · /model NAME takes another model", pilot):
            stage.engine.fail_fatally("model_not_found")
        async with brings(lambda: stage.notices == ["The engine has ended. /model NAME takes another model."], pilot):
            await ask(pilot, "Anyone there?")


async def test_restarting_in_the_middle_of_an_answer_says_so_and_gives_the_question_back() -> None:
    async with Stage(FakeEngine(hold_steps=True), FakeEngine()).running() as (pilot, stage):
        await begun(pilot, stage, 3)
        await press(pilot, "f5", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")
        assert stage.started[0].closed and not stage.asking
        assert stage.prompt == "One?" and "This answer was broken off" in stage.text


async def test_a_question_that_waits_again_is_asked_once_and_in_the_place_of_the_one_that_it_replaces() -> None:
    stage = Stage(FakeEngine(answers=("first",)), FakeEngine(answers=("second", "third")))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        stage.engine.hold()
        await press(pilot, "ctrl+r", brings=lambda: stage.asking)
        await ask(pilot, "Two?", brings=lambda: "1 question waits" in stage.status)
        await act(pilot, stage.engine.die, brings=lambda: not stage.asking)
        assert stage.text.count("first") == 1 and stage.session.waiting == ("One?", "Two?")
        async with brings(
            lambda: len(stage.started) == 2 and len(stage.engine.questions) == 2 and not stage.asking, pilot
        ):
            await pilot.press("f5")
        said = [message.content for message in stage.session.conversation.messages]
        assert said == ["One?", "second", "Two?", "third"] and "first" not in stage.text


async def test_a_new_conversation_does_not_ask_what_waited_in_the_old_one() -> None:
    async with Stage(FakeEngine(hold_steps=True), FakeEngine()).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.asking)
        await ask(pilot, "Two?", brings=lambda: "1 question waits" in stage.status)
        await act(pilot, stage.engine.die, brings=lambda: not stage.asking)
        await press(pilot, "ctrl+l", "f5", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")
        assert stage.engine.questions == []


async def test_a_restarted_engine_has_the_settings_that_were_wished_for_meanwhile() -> None:
    async with Stage(FakeEngine(), FakeEngine()).ready() as (pilot, stage):
        await act(pilot, stage.engine.die, brings=lambda: "has ended" in stage.text)
        async with brings(lambda: stage.session.requested.parameters == {"window": 6}, pilot):
            stage.slider("window").focus()
            await pilot.press("right")
        await press(pilot, "f3", "f3", "f5", brings=lambda: len(stage.started) == 2)
        assert stage.settings[1] == Settings(decoder="autoregressive", parameters={"window": 6})


async def test_what_is_to_be_known_of_a_checkpoint_its_template_and_a_trimmed_history_is_mentioned_once() -> None:
    engine = FakeEngine()
    engine.notices = ["Its temperature is hot, which cannot be.", "Answers also end at <|im_end|>."]
    engine.folds_system = True
    async with Stage(engine, system="Be brief.").ready() as (pilot, stage):
        assert all(notice in stage.text for notice in engine.notices)
        await answered(pilot, stage, "One?")
        engine.trim_next = True
        await answered(pilot, stage, "Two?", times=2)
        assert "the oldest question was left out of this prompt, with its answer (1,100 → 600 tokens)" in stage.text
        assert stage.text.count("no place for a system prompt") == 1
        await ask(pilot, "/system Be kind.")
        await answered(pilot, stage, "Three?", times=3)
        assert stage.text.count("no place for a system prompt") == 2


def test_an_app_that_breaks_down_does_not_end_with_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(_: LadechatApp) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(LadechatApp, "on_mount", break_down)
    monkeypatch.setattr(LadechatApp, "run", partialmethod(LadechatApp.run, headless=True))
    assert run_chat(EngineOptions()) == 1
