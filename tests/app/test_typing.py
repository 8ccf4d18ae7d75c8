"""What is typed goes to the prompt, wherever the focus is."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage, ask
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until


async def test_typing_goes_to_the_prompt_from_the_conversation_and_from_a_slider() -> None:
    async with Stage(decoder="lookahead").ready() as (pilot, stage):
        prompt, transcript = stage.app.query_one(Prompt), stage.app.query_one(Transcript)
        async with brings(lambda: stage.prompt == "1 ä?[" and prompt.has_focus, pilot):
            transcript.focus()
            await pilot.press("1", "space", "ä", "?", "[")

        async with brings(lambda: stage.engine.settings.parameters.get("window") == 9, pilot):
            stage.slider("window").focus()
            await pilot.press("9")
        assert stage.prompt == "1 ä?[" and not prompt.has_focus
        await press(pilot, "!", brings=lambda: stage.prompt == "1 ä?[!" and prompt.has_focus)

        await act(pilot, transcript.focus, brings=lambda: transcript.has_focus)
        async with brings(lambda: stage.prompt == "1 ä?[!two\nlines" and prompt.has_focus, pilot):
            stage.app.post_message(events.Paste("two\nlines"))


async def test_from_the_conversation_the_pace_has_its_keys_while_the_prompt_is_empty() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.pace_has_keys)
        transcript = stage.app.query_one(Transcript)
        async with brings(lambda: stage.session.pace.paused, pilot):
            transcript.focus()
            await pilot.press("space")
        assert transcript.has_focus and stage.prompt == ""
        await press(pilot, "question_mark", brings=lambda: type(stage.app.screen).__name__ == "ExplainScreen")
        await press(pilot, "escape", "a", brings=lambda: stage.prompt == "a")
        async with brings(lambda: stage.prompt == "a ", pilot):
            transcript.focus()
            await pilot.press("space")
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
        await until(lambda: bool(stage.engine.questions), pilot)
        assert [message.content for message in stage.engine.questions[0].messages] == ["Why not"]
        await press(pilot, "a", "ctrl+j", "b", brings=lambda: stage.prompt == "a\nb")


async def test_keys_with_letters_close_behind_them_do_what_they_are_for() -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        for key in [events.Key("f6", None), *(events.Key(letter, letter) for letter in "Why"), events.Key("f2", None)]:
            stage.app.post_message(key)
        await until(lambda: stage.prompt == "Why", pilot)
        await until(lambda: stage.session.pace.in_slow_motion, pilot)
        await until(lambda: not stage.app.query_one(SidePanels).display, pilot)


async def test_letters_that_change_no_height_do_not_lay_the_screen_out_anew() -> None:
    async with Stage().ready() as (pilot, stage):
        await press(pilot, "a", brings=lambda: stage.prompt == "a")  # the first changes what the footer offers
        await pilot.pause()
        layouts = list[object]()
        stage.app.screen.screen_layout_refresh_signal.subscribe(stage.app.screen, layouts.append)
        await press(pilot, *"bcdefgh", brings=lambda: stage.prompt == "abcdefgh")
        await pilot.pause()
        assert not layouts
        await press(pilot, "ctrl+j", brings=lambda: "\n" in stage.prompt)
        await until(lambda: bool(layouts), pilot)
