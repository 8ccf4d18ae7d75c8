"""What is typed goes to the prompt, wherever the focus is."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from ladechat.widgets.prompt import Prompt
from ladechat.widgets.side import SidePanels
from ladechat.widgets.transcript import Transcript
from tests.app.stage import Stage, ask, wait_until
from tests.fake_engine import FakeEngine


async def test_typing_goes_to_the_prompt_from_the_conversation_and_from_a_slider() -> None:
    stage = Stage(decoder="lookahead")
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        prompt, transcript = stage.app.query_one(Prompt), stage.app.query_one(Transcript)
        transcript.focus()
        await pilot.press("1", "space", "ä", "?", "[")
        await wait_until(pilot, lambda: stage.prompt == "1 ä?[" and prompt.has_focus)

        stage.slider("window").focus()
        await pilot.press("9")
        await wait_until(pilot, lambda: stage.engine.settings.parameters.get("window") == 9)
        assert stage.prompt == "1 ä?[" and not prompt.has_focus
        await pilot.press("!")
        await wait_until(pilot, lambda: stage.prompt == "1 ä?[!" and prompt.has_focus)

        transcript.focus()
        await pilot.pause()
        stage.app.post_message(events.Paste("two\nlines"))
        await wait_until(pilot, lambda: stage.prompt == "1 ä?[!two\nlines" and prompt.has_focus)


async def test_from_the_conversation_the_pace_has_its_keys_while_the_prompt_is_empty() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.pace_has_keys)
        transcript = stage.app.query_one(Transcript)
        transcript.focus()
        await pilot.press("space")
        await wait_until(pilot, lambda: stage.session.pace.paused)
        assert transcript.has_focus and stage.prompt == ""
        await pilot.press("question_mark")
        await wait_until(pilot, lambda: type(stage.app.screen).__name__ == "ExplainScreen")
        await pilot.press("escape", "a")
        await wait_until(pilot, lambda: stage.prompt == "a")
        transcript.focus()
        await pilot.press("space")
        await wait_until(pilot, lambda: stage.prompt == "a ")
        assert stage.session.pace.paused and isinstance(stage.app.focused, TextArea)


async def test_a_question_typed_before_the_first_frame_is_asked() -> None:
    """What is typed while Python starts waits in the terminal, where Enter is still a line feed."""
    stage = Stage(FakeEngine(hold_steps=True))
    typed = [events.Key("W", "W"), events.Key("h", "h"), events.Paste("y not"), events.Key("ctrl+j", "\n")]

    def type_at_once(message: Message) -> None:
        if typed and isinstance(message, events.Mount) and stage.app.screen_stack:
            early = typed.copy()
            typed.clear()
            for event in early:
                stage.app.post_message(event)

    async with stage.app.run_test(message_hook=type_at_once) as pilot:
        await wait_until(pilot, lambda: bool(stage.engine.questions))
        assert [message.content for message in stage.engine.questions[0].messages] == ["Why not"]
        await pilot.press("a", "ctrl+j", "b")
        await wait_until(pilot, lambda: stage.prompt == "a\nb")


async def test_keys_with_letters_close_behind_them_do_what_they_are_for() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        for key in [events.Key("f6", None), *(events.Key(letter, letter) for letter in "Why"), events.Key("f2", None)]:
            stage.app.post_message(key)
        await wait_until(pilot, lambda: stage.prompt == "Why")
        await wait_until(pilot, lambda: stage.session.pace.in_slow_motion)
        await wait_until(pilot, lambda: not stage.app.query_one(SidePanels).display)
