"""What each key and slider of the app does."""

from itertools import pairwise

import msgspec
import pytest
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from ladechat.palette import Look
from ladechat.protocol import Configure
from ladechat.widgets.slider import Slider
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.transcript import Transcript
from tests.app.stage import SHOWN_ANSWER, Stage, answered, ask, wait_until
from tests.fake_engine import FakeEngine


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


async def test_the_palette_lets_w_n_and_g_follow_what_they_yield_and_a_slider_pins_them() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        status = stage.app.query_one(StatusLine)
        sliders = {slider.setting: slider for slider in stage.app.query(Slider)}
        commands = {command.title: command for command in stage.app.get_system_commands(stage.app.screen)}
        commands["Auto: on"].callback()
        await wait_until(pilot, lambda: status.decoder == "lookahead, auto")
        assert {name for name, slider in sliders.items() if slider.has_class("-idle")} >= {"window", "ngram", "guesses"}
        sliders["temperature"].focus()
        await pilot.press("right")
        await wait_until(pilot, lambda: stage.engine.settings.temperature == 0.1)
        assert stage.engine.settings.auto
        sliders["window"].focus()
        await pilot.press("right")
        await wait_until(pilot, lambda: status.decoder == "lookahead")
        assert (stage.engine.settings.window, stage.engine.settings.auto) == (6, False)
        assert not sliders["window"].has_class("-idle")


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
