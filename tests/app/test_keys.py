"""What each key and slider of the app does."""

from functools import partial

import pytest
from textual import command as palette
from textual.events import Key

from ladechat import catalog
from ladechat.palette import Look
from ladechat.protocol import Configure, DecoderInfo, Parameter
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.sliders.sliders import Sliders
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import SHOWN_ANSWER, Stage, answered, ask, begun, entries, footer_has_room, footer_names
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until


@pytest.mark.parametrize(("parameter", "value"), [("window", 6), ("ngram", 4), ("guesses", 6)])
async def test_a_slider_configures_the_decoder(parameter: str, value: int) -> None:
    async with Stage(decoder="lookahead").ready() as (pilot, stage):
        stage.slider(parameter).focus()
        await press(pilot, "right", brings=lambda: stage.engine.commands == [Configure(parameters={parameter: value})])
        await until(lambda: stage.slider(parameter).number == value, pilot)


async def test_sliders_go_where_the_engine_says() -> None:
    async with Stage(decoder="lookahead").ready() as (pilot, stage):
        wanted = Configure(parameters={"window": 11, "ngram": 6, "guesses": 9}, temperature=0.7, top_p=0.9)
        await stage.engine.send(wanted)
        sliders = list(stage.app.query(Slider))
        await until(lambda: [slider.number for slider in sliders] == [11, 6, 9, 0.7, 0.9], pilot)
        async with brings(lambda: len(stage.engine.commands) == 2, pilot):
            sliders[0].focus()
            await pilot.press("right")
        assert stage.engine.commands[1] == Configure(parameters={"window": 12}), "nothing was said in between"


async def test_a_slider_takes_effect_in_the_middle_of_an_answer() -> None:
    async with Stage(FakeEngine(hold_steps=True), decoder="lookahead").running() as (pilot, stage):
        await begun(pilot, stage, 3)
        async with brings(lambda: stage.engine.settings.parameters == {"window": 9}, pilot):
            stage.slider("window").focus()
            await pilot.press("9")
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)
        assert SHOWN_ANSWER in stage.text


async def test_digits_behind_a_click_on_a_slider_or_behind_a_letter_belong_to_the_question() -> None:
    async with Stage(decoder="lookahead").ready() as (pilot, stage):
        slider = stage.slider("window")
        async with brings(lambda: len(stage.engine.commands) == 1, pilot):
            await pilot.click(slider, offset=(slider.columns[-1], 0))
        assert slider.has_focus
        await press(pilot, *"25", brings=lambda: stage.prompt == "25")
        slider.focus()
        await until(lambda: slider.has_focus, pilot)
        for character in "a 7":  # all at once, as over a slow line
            stage.app.post_message(Key({" ": "space"}.get(character, character), character))
        await until(lambda: stage.prompt == "25a 7", pilot)
        assert len(stage.engine.commands) == 1


def shows(status: StatusLine, decoder: str) -> bool:
    return status.decoder == decoder


def shown_sliders(stage: Stage) -> list[str]:
    return [slider.parameter.name for slider in stage.app.query_one(Sliders).parameter_sliders]


async def test_the_sliders_are_the_numbers_that_the_decoder_has() -> None:
    async with Stage().ready() as (pilot, stage):
        status = stage.app.query_one(StatusLine)
        decoders = [info for info in catalog.DECODERS.values() if info.name != stage.engine.settings.decoder]
        for info in [*decoders, catalog.DECODERS["auto"], catalog.DECODERS["lookahead"]]:
            async with brings(partial(shows, status, info.label), pilot):
                await stage.engine.send(Configure(decoder=info.name))
            owner = catalog.DECODERS[info.by_hand] if info.by_hand else info
            numbers = [one.name for one in owner.parameters if not isinstance(one.default, bool)]
            assert shown_sliders(stage) == numbers
            assert [slider.has_class("-idle") for slider in stage.app.query_one(Sliders).parameter_sliders] == [
                info.by_hand is not None
            ] * len(numbers)


async def test_a_decoder_that_only_the_engine_knows_has_its_sliders_and_its_place_in_the_palette(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dice = Parameter(name="dice", label="dice", help="How many [b]dice.", default=2, least=1, most=6)
    sides = Parameter(name="sides", label="sides", help="Of each.", default=6, live=False)
    monkeypatch.setitem(catalog.DECODERS, "toy", DecoderInfo("toy", "toy guesses", "Roll.", [dice, sides]))
    engine = FakeEngine()
    async with Stage(engine).ready() as (pilot, stage):
        monkeypatch.delitem(catalog.DECODERS, "toy")
        commands = entries(stage.app)
        assert commands["Decoder: toy guesses"].help == "Roll."
        async with brings(lambda: stage.app.query_one(StatusLine).decoder == "toy guesses", pilot):
            commands["Decoder: toy guesses"].callback()
        assert shown_sliders(stage) == ["dice"]
        async with brings(lambda: engine.settings.parameters == {"dice": 5}, pilot):
            stage.slider("dice").focus()
            await pilot.press("5")


def decoders_wished(stage: Stage) -> list[str | None]:
    return [command.decoder for command in stage.engine.commands if isinstance(command, Configure)]


async def test_f3_switches_between_plain_decoding_and_the_decoder_before() -> None:
    async with Stage().ready() as (pilot, stage):
        status = stage.app.query_one(StatusLine)
        assert status.decoder == "auto"
        await press(pilot, "f3", brings=lambda: status.decoder == "plain decoding")
        assert shown_sliders(stage) == []
        await answered(pilot, stage, "One?")
        assert SHOWN_ANSWER in stage.text
        await press(pilot, "f3", brings=lambda: status.decoder == "auto")
        commands = entries(stage.app)
        async with brings(lambda: status.decoder == "suffix matching", pilot):
            commands["Decoder: suffix matching"].callback()
            await pilot.press("f3", "f3")
        await act(pilot, commands["Decoder: auto"].callback, brings=lambda: status.decoder == "auto")
        assert decoders_wished(stage) == ["autoregressive", "auto", "suffix", "autoregressive", "suffix", "auto"]
        assert any("window" in title.casefold() for title in commands), "a newcomer looks for it there"


async def test_with_a_model_of_one_token_a_pass_no_other_decoder_is_taken() -> None:
    engine = FakeEngine()
    engine.single_token = "Its cache cannot go back."
    async with Stage(engine, decoder="autoregressive").ready() as (pilot, stage):
        await press(pilot, "f3", brings=lambda: stage.notices == ["Plain decoding only: Its cache cannot go back."])
        assert engine.commands == []


async def test_moving_a_slider_of_a_decoder_that_chooses_by_itself_sets_it_by_hand_and_f3_goes_back() -> None:
    async with Stage().running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        status = stage.app.query_one(StatusLine)
        assert shown_sliders(stage) == ["window", "ngram", "guesses"]
        async with brings(lambda: stage.engine.settings.temperature == 0.1, pilot):
            stage.app.query_one("#slider-temperature").focus()
            await pilot.press("right")
        assert stage.engine.settings.decoder == "auto"
        async with brings(lambda: status.decoder == "lookahead", pilot):
            stage.slider("window").focus()
            await pilot.press("right")
        assert stage.engine.commands[-1] == Configure(decoder="lookahead", parameters={"window": 6})
        assert stage.slider("window").has_focus and not stage.slider("window").has_class("-idle")
        await press(pilot, "right", brings=lambda: stage.engine.settings.parameters == {"window": 7})
        assert stage.engine.commands[-1] == Configure(parameters={"window": 7})
        assert stage.notices == ["W by hand: lookahead now. F3 goes back to auto."]
        window = stage.app.query_one(WindowPanel)
        assert window.explain().startswith("Fills with the next answer")
        await press(pilot, "f3", brings=lambda: status.decoder == "auto" and not window.awaits_answer)
        await press(pilot, "left", brings=lambda: status.decoder == "lookahead" and window.awaits_answer)
        await answered(pilot, stage, "Two?", times=2)
        assert window.explain().startswith("A pass reads the rows")
        for decoder in ("auto", "plain decoding", "auto"):
            async with brings(partial(lambda wanted: status.decoder == wanted, decoder), pilot):
                await pilot.press("f3")


async def test_f4_switches_the_look_of_everything() -> None:
    async with Stage().running() as (pilot, stage):
        transcript, pool = stage.app.query_one(Transcript), stage.app.query_one("#pool")
        for look in (Look.DEMO, Look.HUES):
            await press(pilot, "f4", brings=lambda: transcript.palette.look is look)
            assert getattr(pool, "palette").look is look  # noqa: B009


async def test_f2_hides_the_panels_and_gives_their_room_to_the_conversation() -> None:
    async with Stage().running(size=(100, 30)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        narrow = stage.app.query_one(Transcript).size.width
        await press(pilot, "f2", brings=lambda: stage.app.query_one(Transcript).size.width > narrow + 30)
        assert SHOWN_ANSWER in stage.text
        await press(pilot, "f2", brings=lambda: stage.app.query_one(Transcript).size.width == narrow)


async def test_page_keys_and_end_move_the_conversation_while_the_prompt_has_the_focus() -> None:
    async with Stage(welcome="\n".join(f"line {number}" for number in range(80))).running() as (pilot, stage):
        transcript = stage.app.query_one(Transcript)
        await until(lambda: transcript.max_scroll_y > 40 and transcript.follows_end, pilot)
        await press(pilot, "pageup", "pageup", brings=lambda: not transcript.follows_end)
        above = transcript.scroll_offset.y
        await press(pilot, "pagedown", brings=lambda: transcript.scroll_offset.y > above)
        await press(pilot, "pageup", brings=lambda: transcript.scroll_offset.y == above)
        await press(pilot, "x", "end", brings=lambda: stage.prompt == "x")
        assert not transcript.follows_end
        await press(pilot, "backspace", "end", brings=lambda: transcript.follows_end)


@pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 48), marks=pytest.mark.full)])
async def test_the_footer_names_the_keys_in_their_order_and_has_room_for_all(size: tuple[int, int]) -> None:
    stage = Stage()
    record = ["Rec"] if size[0] > 80 else []

    def names() -> list[str]:
        return footer_names(stage.app)

    async with stage.app.run_test(size=size) as pilot:
        idle = ["Send", "Panels", "Decoder", "Slow", *record, "Help", "Explain", "Quit", "palette"]
        await until(lambda: stage.activity == "ready" and names() == idle, pilot)
        await answered(pilot, stage, "One?")
        looking_back = [idle[0], "Back", *idle[1:]]
        await until(lambda: names() == looking_back, pilot)
        fast = "Full speed" if size[0] > 80 else "Fast"
        await press(pilot, "f6", brings=lambda: names() == [fast if name == "Slow" else name for name in looking_back])
        assert footer_has_room(stage.app)
        async with brings(lambda: "Explain" not in names(), pilot):
            await pilot.press("x")  # now ? is typed
        await press(pilot, "backspace", "f6", brings=lambda: names() == looking_back)


FOUND = {"record the": "Record the session", "gif": "Export conversation", "rename or": "Conversations"}
"""What is typed into the palette, and what is found: by its title, and by what is said of it."""


def lists(listed: palette.CommandList, title: str) -> bool:
    """Is this all that is there?"""
    return [str(option.prompt).partition("\n")[0] for option in listed.options] == [title]


async def test_the_command_palette_lists_what_keys_do_and_the_answer_goes_on_behind_it() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        names = entries(stage.app).keys()
        assert {"Panels", "Decoder", "Look", "Slow motion", "Restart engine", "New conversation"} <= names
        assert "Stop" not in names, "there is nothing to stop"
        await ask(pilot, "One?", brings=lambda: "Stop" in entries(stage.app))
        await pilot.press("ctrl+p")
        listed = stage.app.screen.query_one(palette.CommandList)
        await until(lambda: listed.option_count > 3 and listed.region.height > 3, pilot)
        await pilot.press("pagedown", "pageup")
        for query, title in FOUND.items():
            stage.app.screen.query_one(palette.CommandInput).value = query
            await until(partial(lists, listed, title), pilot)
        await act(pilot, stage.engine.release, brings=lambda: not stage.session.asking)
        await press(pilot, "escape", brings=lambda: stage.app.screen is stage.screen and SHOWN_ANSWER in stage.text)


async def test_ctrl_g_formats_answers_and_ctrl_n_opens_long_questions() -> None:
    async with Stage().ready(size=(120, 40)) as (pilot, stage):
        await answered(pilot, stage, "\n".join(f"line {number}" for number in range(20)))
        transcript = stage.screen.view.transcript

        def shown(text: str) -> bool:
            return any(text in line.text for line in transcript.lines)

        assert shown("```python") and not shown("line 19")
        async with brings(lambda: not shown("```python") and shown("│ def guesses") and shown("line 19"), pilot):
            await pilot.press("ctrl+g", "ctrl+n")
        await press(pilot, "ctrl+g", "ctrl+n", brings=lambda: shown("```python") and not shown("line 19"))
