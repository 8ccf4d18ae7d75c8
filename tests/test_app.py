"""The whole app, with a scripted engine: what is asked, shown, sent and kept, and what each key does."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partialmethod
from itertools import combinations, pairwise
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot
from textual.selection import Selection
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from ladechat.app import LadechatApp, run
from ladechat.clipboard import keep
from ladechat.palette import Look
from ladechat.protocol import Configure, Loading, Message, Settings, Stop
from ladechat.session.conversation import Conversation
from ladechat.session.live import EngineOptions
from ladechat.session.recording import Recorder
from ladechat.widgets.flow import safe
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.slider import Slider
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.too_small import TooSmall
from ladechat.widgets.transcript import Transcript
from tests.fake_engine import ANSWER, FakeEngine

Driver = Pilot[int]
SHOWN_ANSWER = safe(ANSWER)


class Stage:
    """An app with fake engines: the one that runs, and those before it."""

    def __init__(
        self, *engines: FakeEngine, welcome: str = "", system: str | None = None, recorder: Recorder | None = None
    ) -> None:
        self.engines = list(engines) or [FakeEngine()]
        self.started: list[FakeEngine] = []
        self.settings: list[Settings] = []
        self.recorder = recorder or Recorder()
        conversation = Conversation(system)
        self.app = LadechatApp(self._new_engine, Settings(), conversation, welcome, recorder=self.recorder)

    def _new_engine(self, settings: Settings) -> FakeEngine:
        engine = self.engines[len(self.started)]
        engine.settings = settings
        self.settings.append(settings)
        self.started.append(engine)
        return engine

    @property
    def engine(self) -> FakeEngine:
        return self.started[-1]

    @property
    def text(self) -> str:
        """All of the conversation, however it is wrapped."""
        chosen = self.app.query_one(Transcript).get_selection(Selection(None, None))
        return chosen[0] if chosen else ""

    @property
    def prompt(self) -> str:
        return self.app.query_one(Prompt).text

    @property
    def activity(self) -> str:
        return self.app.query_one(StatusLine).activity

    @property
    def notices(self) -> list[str]:
        return [notice.message for notice in self.app._notifications]


async def wait_until(pilot: Driver, condition: Callable[[], bool]) -> None:
    """Let the app work until the condition holds."""
    for _ in range(500):
        if condition():
            await pilot.pause()
            return
        await pilot.pause(0.01)
    raise AssertionError(f"never came true; the screen ends with {pilot.app.query_one(Transcript)._lines[-8:]}")


async def ask(pilot: Driver, text: str) -> None:
    pilot.app.query_one(Prompt).focus()
    pilot.app.query_one(Prompt).load_text(text)
    await pilot.press("enter")


async def answered(pilot: Driver, stage: Stage, text: str, times: int = 1) -> None:
    """Ask, and wait until that many answers are on the screen."""
    await ask(pilot, text)
    await wait_until(pilot, lambda: not stage.app.answering and stage.text.count(" steps · S ") == times)


# --- asking ----------------------------------------------------------------------------------------------------------


async def test_escape_stops_a_download_and_a_restart_goes_on_with_it() -> None:
    stage = Stage(FakeEngine(hold_loading=True), FakeEngine())
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: bool(stage.activity))
        doing = "fetching what is not cached"
        stage.engine._say(
            Loading(stage=1, stages=4, doing=doing, fraction=0.5, done_bytes=10**9, total_bytes=2 * 10**9)
        )
        await wait_until(pilot, lambda: doing in stage.activity)
        await ask(pilot, "One?")
        await pilot.press("escape")
        await wait_until(pilot, lambda: "The download was stopped; what has come is kept" in stage.text)
        assert stage.started[0].closed
        assert stage.prompt == "One?"
        await pilot.press("f5")
        await wait_until(pilot, lambda: len(stage.started) == 2 and stage.activity == "ready")


async def test_a_question_asked_while_loading_is_shown_at_once_and_answered_when_ready() -> None:
    stage = Stage(FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: "reading the weights" in stage.activity)
        await ask(pilot, "What is a window?")
        await wait_until(pilot, lambda: "What is a window?" in stage.text)
        assert stage.prompt == ""
        assert "pool" not in stage.text
        stage.engine.finish_loading()
        await wait_until(pilot, lambda: not stage.app.answering)
        assert SHOWN_ANSWER in stage.text
        assert stage.text.index("You") < stage.text.index("What is a window?") < stage.text.index("demo model")
        assert stage.activity == "ready"


async def test_the_second_question_takes_the_whole_conversation_and_the_token_ids_along() -> None:
    stage = Stage(system="Be brief.")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        first, second = stage.engine.questions
        assert [first.turn, second.turn] == [1, 2]
        assert first.messages == [Message(role="system", content="Be brief."), Message(role="user", content="One?")]
        assert second.messages[:2] == first.messages
        answer = second.messages[2]
        assert (answer.role, answer.content) == ("assistant", ANSWER)
        assert answer.token_ids
        assert second.messages[3:] == [Message(role="user", content="Two?")]


async def test_questions_during_an_answer_wait_and_are_asked_in_order() -> None:
    stage = Stage(FakeEngine(answers=("first answer", "second answer", "third answer"), hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.app.answering)
        await ask(pilot, "Two?")
        await ask(pilot, "Three?")
        await wait_until(pilot, lambda: len(stage.notices) == 2)
        assert len(stage.engine.questions) == 1
        stage.engine.release()
        await wait_until(pilot, lambda: "third answer" in stage.text and not stage.app.answering)
        said = [stage.text.index(part) for part in ("One?", "first answer", "Two?", "second answer", "Three?", "third")]
        assert said == sorted(said)


async def test_an_empty_question_is_not_sent() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await ask(pilot, "   ")
        await pilot.press("enter")
        assert stage.engine.questions == []
        assert not stage.app.answering


async def test_the_prompt_takes_several_lines_and_brings_back_what_was_asked() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("a", "ctrl+j", "b", "enter")
        await wait_until(pilot, lambda: not stage.app.answering)
        assert stage.engine.questions[0].messages[-1].content == "a\nb"
        await pilot.press("up")
        assert stage.prompt == "a\nb"
        await pilot.press("down")
        assert stage.prompt == ""


async def test_up_and_down_move_within_a_question_that_fills_several_rows() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        long = "word " * 60
        prompt = stage.app.query_one(Prompt)
        prompt.load_text(long)
        prompt.move_cursor(prompt.document.end)
        await pilot.press("up")
        assert stage.prompt == long
        await pilot.press("down", "down")
        assert stage.prompt == long
        prompt.move_cursor((0, 0))
        await pilot.press("up")
        assert stage.prompt == "One?"


async def test_the_welcome_is_said_first_and_not_sent() -> None:
    stage = Stage(welcome="Ask me anything.")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        assert stage.text.strip().startswith("Ask me anything.")
        assert [message.content for message in stage.engine.questions[0].messages] == ["One?"]


# --- stopping and leaving ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_key_stops_the_answer_and_what_there_is_of_it_is_kept(key: str) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.app.answering)
        stage.engine.release(4)
        await wait_until(pilot, lambda: "The n-gram" in stage.text)
        await pilot.press(key)
        await wait_until(pilot, lambda: not stage.app.answering)
        assert stage.engine.commands.count(Stop()) == 1
        assert "stopped" in stage.text
        stage.engine.release()
        await ask(pilot, "Two?")
        await wait_until(pilot, lambda: len(stage.engine.questions) == 2 and not stage.app.answering)
        kept = stage.engine.questions[1].messages[1].content
        assert kept and ANSWER.startswith(kept) and kept != ANSWER


async def test_without_an_answer_escape_sends_nothing() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("escape")
        assert stage.engine.commands == []


async def test_ctrl_c_copies_the_selection_and_neither_stops_nor_quits() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "What is copied?")
        await wait_until(pilot, lambda: "What is copied?" in stage.text)
        transcript = stage.app.query_one(Transcript)
        stage.app.screen.selections = {transcript: Selection(None, None)}
        await pilot.press("ctrl+c")
        assert "What is copied?" in stage.app.clipboard
        assert stage.app.answering
        assert Stop() not in stage.engine.commands
        assert stage.app.screen.get_selected_text() is None


async def test_ctrl_c_quits_only_at_the_second_time() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("ctrl+c")
        assert stage.app.return_value is None
        assert stage.notices == ["Ctrl+C again quits."]
        await pilot.press("ctrl+c")
        assert stage.app.return_value == 0


@pytest.mark.parametrize("slow", [False, True])
async def test_leaving_closes_the_engine_also_while_steps_are_coming(slow: bool) -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        if slow:
            await pilot.press("f6")
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: "The" in stage.text)
        await pilot.press("ctrl+q")
    assert stage.app.return_code == 0
    assert stage.engine.closed


# --- keys and sliders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slider", "wish"),
    [
        ("#slider-window", Configure(window=6)),
        ("#slider-ngram", Configure(ngram=4)),
        ("#slider-guesses", Configure(guesses=6)),
        ("#slider-temperature", Configure(temperature=0.1)),
    ],
)
async def test_a_slider_configures_the_engine(slider: str, wish: Configure) -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        stage.app.query_one(slider).focus()
        await pilot.press("right")
        await wait_until(pilot, lambda: wish in stage.engine.commands)
        changed = next(value for value in msgspec.structs.astuple(wish) if value is not None)
        await wait_until(pilot, lambda: stage.app.query_one(slider, Slider).number == changed)
        assert stage.engine.commands == [wish]


async def test_sliders_go_where_the_engine_says() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await stage.engine.send(Configure(window=11, ngram=6, guesses=9, temperature=0.7, top_p=0.9))
        sliders = list(stage.app.query(Slider))
        await wait_until(pilot, lambda: [slider.number for slider in sliders] == [11, 6, 9, 0.7, 0.9])
        await pilot.pause(0.3)
        assert len(stage.engine.commands) == 1


async def test_a_slider_takes_effect_in_the_middle_of_an_answer() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        stage.engine.release(3)
        await wait_until(pilot, lambda: "The n-gram" in stage.text)
        stage.app.query_one("#slider-window").focus()
        await pilot.press("9")
        await wait_until(pilot, lambda: stage.engine.settings.window == 9)
        stage.engine.release()
        await wait_until(pilot, lambda: not stage.app.answering)
        assert SHOWN_ANSWER in stage.text


async def test_f3_switches_between_lookahead_and_plain_decoding() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        status = stage.app.query_one(StatusLine)
        sliders = list(stage.app.query(Slider))
        assert status.decoder == "lookahead"
        assert {slider.setting for slider in sliders if slider.disabled} == {"top_p"}  # of no use without a temperature
        await pilot.press("f3")
        await wait_until(pilot, lambda: status.decoder == "plain decoding")
        assert {slider.setting for slider in sliders if slider.disabled} == {"window", "ngram", "guesses", "top_p"}
        await answered(pilot, stage, "One?")
        assert SHOWN_ANSWER in stage.text
        await pilot.press("f3")
        await wait_until(pilot, lambda: status.decoder == "lookahead")
        wishes = [command for command in stage.engine.commands if isinstance(command, Configure)]
        assert wishes == [Configure(decoder="autoregressive"), Configure(decoder="lookahead")]


async def test_f4_switches_the_look_of_everything() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        transcript, pool = stage.app.query_one(Transcript), stage.app.query_one("#pool")
        for look in (Look.DEMO, Look.HUES):
            await pilot.press("f4")
            assert transcript.palette.look is look
            assert getattr(pool, "palette").look is look  # noqa: B009


async def test_f2_hides_the_panels_and_gives_their_room_to_the_conversation() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        await answered(pilot, stage, "One?")
        narrow = stage.app.query_one(Transcript).size.width
        await pilot.press("f2")
        await wait_until(pilot, lambda: stage.app.query_one(Transcript).size.width > narrow + 30)
        assert SHOWN_ANSWER in stage.text
        await pilot.press("f2")
        await wait_until(pilot, lambda: stage.app.query_one(Transcript).size.width == narrow)


async def test_f6_shows_steps_slowly_until_it_is_pressed_again() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("f6")
        assert stage.app._pacer.frames_per_step > 0
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: "The" in stage.text)
        assert SHOWN_ANSWER not in stage.text
        await pilot.press("f6")
        await wait_until(pilot, lambda: SHOWN_ANSWER in stage.text)


async def test_page_keys_and_end_move_the_conversation_while_the_prompt_has_the_focus() -> None:
    stage = Stage(welcome="\n".join(f"line {number}" for number in range(80)))
    async with stage.app.run_test() as pilot:
        transcript = stage.app.query_one(Transcript)
        await wait_until(pilot, lambda: transcript.max_scroll_y > 40 and transcript.follows_end)
        await pilot.press("pageup", "pageup")
        await wait_until(pilot, lambda: not transcript.follows_end)
        await pilot.press("x", "end")
        assert not transcript.follows_end
        await pilot.press("backspace", "end")
        await wait_until(pilot, lambda: transcript.follows_end)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_footer_names_the_keys_in_their_order_and_has_room_for_all(size: tuple[int, int]) -> None:
    stage = Stage()
    async with stage.app.run_test(size=size) as pilot:
        await wait_until(pilot, lambda: bool(stage.app.query(FooterKey)))
        keys = list(stage.app.query_one(Footer).query(FooterKey))
        names = [key.description for key in keys]
        assert names == ["Send", "Stop", "Panels", "Decoder", "Look", "Slow", "Rec", "Quit", "palette"]
        for one, other in pairwise(keys):
            assert one.region.right <= other.region.x
        assert keys[-1].region.right <= size[0]


async def test_the_command_palette_lists_what_keys_do_and_the_answer_goes_on_behind_it() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        names = {command.title for command in stage.app.get_system_commands(stage.app.screen)}
        assert {"Stop", "Panels", "Decoder", "Look", "Slow", "Rec", "Restart engine", "New"} <= names
        await ask(pilot, "One?")
        await pilot.press("ctrl+p")
        stage.engine.release()
        await wait_until(pilot, lambda: not stage.app.answering)
        await pilot.press("escape")
        assert SHOWN_ANSWER in stage.text


async def test_a_new_conversation_forgets_the_old_one() -> None:
    stage = Stage(system="Be brief.")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await pilot.press("ctrl+l")
        assert "One?" not in stage.text
        await answered(pilot, stage, "Two?")
        assert [message.content for message in stage.engine.questions[1].messages] == ["Be brief.", "Two?"]


async def test_during_an_answer_no_new_conversation_is_begun() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.app.answering)
        await pilot.press("ctrl+l")
        assert "One?" in stage.text
        assert stage.notices == ["Stop the answer first (Esc)."]


# --- what may go wrong ------------------------------------------------------------------------------------------------


async def test_a_failed_turn_gives_the_question_back_and_the_next_one_is_answered() -> None:
    engine = FakeEngine()
    engine.fail_next = "message_too_long"
    stage = Stage(engine)
    async with stage.app.run_test() as pilot:
        await ask(pilot, "Far too long?")
        await wait_until(pilot, lambda: stage.prompt == "Far too long?")
        assert "It is too long. Shorten it." in stage.text
        assert not stage.app.answering
        await answered(pilot, stage, "Short?")
        assert [message.content for message in engine.questions[1].messages] == ["Short?"]


async def test_an_answer_that_breaks_off_loses_neither_its_question_nor_the_one_that_waits() -> None:
    engine = FakeEngine(hold_steps=True)
    stage = Stage(engine)
    async with stage.app.run_test() as pilot:
        await ask(pilot, "First?")
        engine.release(2)
        await ask(pilot, "Second?")
        engine.hold()
        engine.break_off()
        await wait_until(pilot, lambda: len(engine.questions) == 2)
        assert "It broke. Try again." in stage.text
        assert stage.prompt == "First?"
        engine.release()
        await wait_until(pilot, lambda: not stage.app.answering)
        assert [message.content for message in engine.questions[1].messages] == ["Second?"]
        assert [message.content for message in stage.app._conversation.messages][:1] == ["Second?"]


async def test_a_question_given_back_does_not_overwrite_what_is_being_typed() -> None:
    stage = Stage(FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await pilot.press("x")
        stage.engine.die()
        await wait_until(pilot, lambda: "F5" in stage.text)
        assert stage.prompt == "x"


async def test_when_the_engine_dies_the_conversation_goes_on_with_a_new_one() -> None:
    stage = Stage(FakeEngine(), FakeEngine(hold_steps=True), FakeEngine())
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        stage.engine.die()
        await wait_until(pilot, lambda: "The engine has ended." in stage.text and "F5" in stage.text)
        assert SHOWN_ANSWER in stage.text
        await ask(pilot, "Anyone there?")
        await wait_until(pilot, lambda: stage.prompt == "Anyone there?")
        await pilot.press("f5")
        await wait_until(pilot, lambda: len(stage.started) == 2 and stage.activity == "ready")

        await ask(pilot, "Two?")
        stage.engine.release(2)
        await wait_until(pilot, lambda: stage.engine.questions != [] and stage.app.answering)
        stage.engine.die()
        await wait_until(pilot, lambda: stage.prompt == "Two?")
        await pilot.press("f5")
        await wait_until(pilot, lambda: len(stage.started) == 3)
        await answered(pilot, stage, "Two?", times=2)
        assert [message.content for message in stage.engine.questions[0].messages] == ["One?", ANSWER, "Two?"]


async def test_an_engine_that_says_nothing_for_long_is_noticed_until_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.activity == "answering …")
        monkeypatch.setattr("ladechat.app.PATIENCE_ANSWERING", -1.0)
        stage.app._look_for_silence()
        assert re.fullmatch(r"no word from the engine for \d+ s · F5 starts it again", stage.activity)
        monkeypatch.setattr("ladechat.app.PATIENCE_ANSWERING", 10.0)
        stage.engine.release(1)
        stage.app._look_for_silence()
        assert stage.activity == "answering …"


async def test_a_reason_for_the_end_is_told_and_told_once() -> None:
    stage = Stage(FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: bool(stage.started))
        stage.engine.fail_fatally()
        await wait_until(pilot, lambda: "The weights are torn. Mend them." in stage.text)
        assert "The engine has ended." not in stage.text
        assert "F5" in stage.activity


async def test_restarting_in_the_middle_of_an_answer_says_so_and_gives_the_question_back() -> None:
    stage = Stage(FakeEngine(hold_steps=True), FakeEngine())
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        stage.engine.release(3)
        await wait_until(pilot, lambda: "The" in stage.text)
        await pilot.press("f5")
        await wait_until(pilot, lambda: len(stage.started) == 2 and stage.activity == "ready")
        assert stage.started[0].closed
        assert stage.prompt == "One?"
        assert "This answer was broken off" in stage.text
        assert not stage.app.answering


async def test_questions_that_waited_are_asked_of_the_engine_that_is_started_again() -> None:
    stage = Stage(FakeEngine(hold_steps=True), FakeEngine())
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.app.answering)
        await ask(pilot, "Two?")
        await wait_until(pilot, lambda: stage.notices != [])
        stage.engine.die()
        await wait_until(pilot, lambda: not stage.app.answering)
        await pilot.press("f5")
        await wait_until(pilot, lambda: len(stage.engine.questions) == 2 and not stage.app.answering)
        assert [question.messages[-1].content for question in stage.engine.questions] == ["One?", "Two?"]
        assert len(stage.engine.questions[1].messages) == 3


async def test_a_new_conversation_does_not_ask_what_waited_in_the_old_one() -> None:
    stage = Stage(FakeEngine(hold_steps=True), FakeEngine())
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.app.answering)
        await ask(pilot, "Two?")
        await wait_until(pilot, lambda: stage.notices != [])
        stage.engine.die()
        await wait_until(pilot, lambda: not stage.app.answering)
        await pilot.press("ctrl+l", "f5")
        await wait_until(pilot, lambda: len(stage.started) == 2 and stage.activity == "ready")
        assert stage.engine.questions == []


class SlowToLeave(FakeEngine):
    """An engine that takes its time to end."""

    async def close(self) -> None:
        await asyncio.sleep(0.2)
        await super().close()


async def test_an_engine_that_takes_long_to_end_is_waited_for_however_often_a_restart_is_asked() -> None:
    stage = Stage(SlowToLeave(), SlowToLeave(), SlowToLeave())
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("f5", "f5", "f5")
        await wait_until(pilot, lambda: len(stage.started) > 1 and stage.activity == "ready")
        assert stage.started[0].closed
        assert not stage.engine.closed


async def test_a_restarted_engine_has_the_settings_that_were_wished_for_meanwhile() -> None:
    stage = Stage(FakeEngine(), FakeEngine())
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        stage.engine.die()
        await wait_until(pilot, lambda: "has ended" in stage.text)
        stage.app.query_one("#slider-window").focus()
        await pilot.press("right", "f3")
        await pilot.pause(0.4)  # a slider speaks when it has come to rest
        await pilot.press("f5")
        await wait_until(pilot, lambda: len(stage.started) == 2)
        assert stage.settings[1] == Settings(window=6, decoder="autoregressive")


async def test_two_presses_of_f3_end_where_they_began() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("f3", "f3")
        await wait_until(pilot, lambda: len(stage.engine.commands) == 2)
        assert stage.engine.commands == [Configure(decoder="autoregressive"), Configure(decoder="lookahead")]


async def test_a_trimmed_history_is_mentioned() -> None:
    engine = FakeEngine()
    stage = Stage(engine)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        engine.trim_next = True
        await answered(pilot, stage, "Two?", times=2)
        assert "the oldest turn was left out of this prompt (1,100 → 600 tokens)" in stage.text


def test_an_app_that_breaks_down_does_not_end_with_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(_: LadechatApp) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(LadechatApp, "on_mount", break_down)
    monkeypatch.setattr(LadechatApp, "run", partialmethod(LadechatApp.run, headless=True))
    assert run(EngineOptions()) == 1


# --- room and colours -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (160, 48), (200, 60)])
async def test_everything_is_inside_the_screen_and_nothing_overlaps(size: tuple[int, int]) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test(size=size) as pilot:
        await ask(pilot, "One?")
        stage.engine.release(12)
        await wait_until(pilot, lambda: "produced" in stage.text)
        names = ("transcript", "window", "pool", "speed", "slider-window", "slider-ngram", "slider-guesses")
        parts: list[Widget] = [stage.app.query_one(f"#{name}") for name in (*names, "prompt", "status")]
        parts.append(stage.app.query_one(Footer))
        for part in parts:
            assert part.region.area > 0, part
            assert stage.app.screen.region.contains_region(part.region), part
        for one, other in combinations(parts, 2):
            assert not one.region.overlaps(other.region), (one, other)
        assert stage.app.query_one(Transcript).size.width >= 40
        heights = {name: stage.app.query_one(f"#{name}").size.height for name in ("window", "pool", "speed")}
        assert min(heights.values()) >= 3, heights


async def test_where_there_is_no_room_for_both_the_conversation_has_it() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(60, 16)) as pilot:
        await answered(pilot, stage, "One?")
        assert stage.app.query_one(Transcript).size.width >= 50
        await pilot.press("f2")
        await wait_until(pilot, lambda: stage.app.query_one("#side").region.area > 0)


@pytest.mark.parametrize("size", [(30, 8), (39, 40), (100, 9), (5, 3), (1, 1)])
async def test_a_terminal_that_is_too_small_says_so_and_loses_nothing(size: tuple[int, int]) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test(size=(100, 30)) as pilot:
        small = stage.app.query_one(TooSmall)
        await ask(pilot, "One?")
        stage.engine.release(3)
        await wait_until(pilot, lambda: "The n-gram" in stage.text)
        await pilot.resize_terminal(*size)
        shown = [small.display]
        assert f"this terminal has {size[0]}×{size[1]}" in str(small.render())
        stage.engine.release()
        await wait_until(pilot, lambda: not stage.app.answering)
        await pilot.resize_terminal(100, 30)
        await wait_until(pilot, lambda: not small.display)
        shown.append(small.display)
        assert shown == [True, False]
        assert SHOWN_ANSWER in stage.text


async def test_f8_copies_the_last_answer_as_it_was_written_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.viewer.keep", lambda text: keep(text, tmp_path))
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("f8")
        assert stage.notices == []
        await answered(pilot, stage, "One?")
        await pilot.press("f8")
        assert stage.app.clipboard == ANSWER == (tmp_path / "copied.txt").read_text()
        assert str(tmp_path / "copied.txt") in stage.notices[-1]


async def test_resizing_the_terminal_keeps_the_text_and_the_place_at_the_end() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(160, 48)) as pilot:
        await answered(pilot, stage, "One?")
        before = stage.text
        for size in ((80, 24), (60, 16), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert stage.text == before
            assert stage.app.query_one(Transcript).follows_end


async def test_a_light_theme_has_the_palette_for_light_surfaces() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        assert stage.app.query_one(Transcript).palette.dark
        await pilot.press("f4")
        stage.app.theme = "textual-light"
        await wait_until(pilot, lambda: not stage.app.query_one(Transcript).palette.dark)
        assert stage.app.query_one(Transcript).palette.look is Look.DEMO


async def test_no_color_reaches_transcript_and_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stage = Stage()
    async with stage.app.run_test():
        assert not stage.app.query_one(Transcript).palette.colour
        assert not stage.app.palette.colour


def test_no_code_of_a_model_is_imported_by_the_app_or_the_command_line() -> None:
    code = (
        "import sys, ladechat.app, ladechat.cli, ladechat.ask\n"
        "print(*sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
