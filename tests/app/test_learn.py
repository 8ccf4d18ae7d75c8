"""The lessons on the screen: what each key does, how one goes on where one was, and how they are left."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import pytest
from textual.events import Click
from textual.widgets import Label, Static
from typer.testing import CliRunner

from ladechat.app import LadechatApp
from ladechat.keys import LEARN_KEYS
from ladechat.lessons.lesson import MISSED, Phase
from ladechat.lessons.progress import Progress, ProgressFile
from ladechat.lessons.scene import WINDOW, Recall, Scene
from ladechat.lessons.scenes import CHAPTERS, SCENES
from ladechat.palette import Look
from ladechat.protocol import Settings
from ladechat.screens.chat import other_screens
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.learn.lesson_session import MOST_NEW_TOKENS
from ladechat.screens.learn.screen import LearnScreen
from ladechat.session.conversations.conversation import SingleQuestions
from ladechat.session.engine import SILENCE_SECONDS, State
from ladechat.session.session import Session
from ladechat.shell import cli
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.lessons import ELSEWHERE, LessonBox, LessonCard, LessonPanels
from ladechat.widgets.panels.cost_panel import CostPanel
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.speed_panel import SpeedPanel
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, Stage, answered, entries, shows
from tests.app.test_help import shown
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until
from tests.widgets.hosting import lines

MOST_EXPLAINED_WORDS = 160
SHORT = "The pool keeps what the window has written."


def session_of(*engines: FakeEngine) -> Session:
    left = list(engines)
    return Session(lambda _: left.pop(0), Settings(), SingleQuestions(max_new_tokens=MOST_NEW_TOKENS, model="demo"))


class Room:
    """The lessons without a chat behind them, with scripted engines."""

    def __init__(
        self, *engines: FakeEngine, progress: Progress | None = None, file: ProgressFile | None = None, notice: str = ""
    ) -> None:
        self.engines = engines or (FakeEngine(answers=(SHORT,)),)
        self.session = session_of(*self.engines)
        self.screen = LearnScreen(self.session, progress or Progress(), file, notice)
        self.app = LadechatApp(self.screen, self.session)

    @property
    def place(self) -> tuple[str, int]:
        return self.screen.lesson.scene.name, self.screen.lesson.place

    @property
    def box(self) -> LessonBox:
        return self.screen.query_one(LessonBox)

    @property
    def card(self) -> LessonCard:
        return self.box.card

    @property
    def acting(self) -> list[str]:
        """Of the keys that answer a card, those that do something now: the footer shows them."""
        return [key for key in ("enter", "1", "2", "3", "4") if self.in_footer(key)]

    def in_footer(self, key: str) -> str:
        """What the footer says that a key does; "" if it says nothing."""
        active = self.screen.active_bindings.get(key)
        return active.binding.description if active is not None and active.binding.show else ""

    @asynccontextmanager
    async def ready(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Driver, Self]]:
        """Run the app, and wait until its engine decodes as the scene wants it."""
        async with self.app.run_test(size=size) as pilot:
            await until(lambda: self.screen.lesson.settings.decoder == self.screen.lesson.scene.decoder, pilot)
            yield pilot, self

    def at(self, scene: str, card: int) -> bool:
        """Is this card shown, with what it has to tell?"""
        return self.place == (scene, card) and self.screen.lesson.page.phase is not Phase.RUNNING


async def test_a_scene_by_keys_alone() -> None:
    async with Room().ready() as (pilot, room):
        await press(pilot, "enter", brings=lambda: room.at("one_token", 1))
        assert room.card.text.startswith("5 passes, 5 tokens")
        assert room.engines[0].steps_done == 5 and room.engines[0].questions[0].fresh

        await press(pilot, "space", brings=lambda: room.acting == ["1", "2", "3"])
        await press(pilot, "enter", brings=lambda: room.card.hint == "Not yet: press a number first, 1 to 3.")
        await press(pilot, "1", brings=lambda: room.acting == ["enter"] and room.screen.lesson.page.outcome is not None)
        assert room.in_footer("left") == "Earlier" and "Not yet" not in room.card.hint
        page = room.screen.lesson.page
        assert (page.choice, page.outcome) == (0, 1) and "passes" in room.card.text

        await press(pilot, "left", "backspace", brings=lambda: room.place == ("one_token", 0))
        async with brings(lambda: room.place == ("one_token", 1) and room.card.text.startswith("5 passes"), pilot):
            await pilot.press("enter")
        assert room.screen.query_one("#sliders").disabled
        async with brings(
            lambda: room.place == ("one_token", 3) and not room.screen.query_one("#sliders").disabled, pilot
        ):
            await pilot.press("enter", "enter")

        slider = room.app.focused
        assert isinstance(slider, Slider) and slider.id == "slider-temperature"
        async with brings(
            lambda: room.card.hint.startswith("Not yet: T is 0 now; move it to 1.") and not room.acting, pilot
        ):
            await pilot.press("enter")
        assert len(room.engines[0].questions) == 1
        assert (room.in_footer("left"), room.in_footer("backspace")) == ("Move", "Earlier")
        await press(pilot, "right", brings=lambda: slider.value == 1)
        await press(pilot, "left", "left", brings=lambda: slider.value == 0)
        assert room.place == ("one_token", 3)
        await press(pilot, "end", brings=lambda: not room.screen.lesson.missing)
        assert room.acting == ["enter"]
        await press(pilot, "enter", brings=lambda: "The same words" in room.card.text)
        assert len(room.engines[0].questions) == 2

        await press(pilot, "enter", "enter", brings=lambda: room.place == ("jacobi", 0))
        await press(pilot, "p", brings=lambda: room.place == ("one_token", 0))
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = shown(room.app)
        assert all(key.tooltip in text for key in LEARN_KEYS) and "W: how many tokens a row" in text
        await press(pilot, "f1", "n", "n", brings=lambda: room.place == ("window", 0))
        await until(lambda: room.engines[0].settings.decoder == "lookahead", pilot)
        assert room.engines[0].settings.temperature == 0
        await press(pilot, "f4", brings=lambda: room.screen.query_one(Transcript).palette.look is Look.DEMO)
        await press(pilot, "escape", brings=lambda: room.app.return_code == 0)
    assert room.engines[0].closed


async def test_a_scene_that_is_left_in_the_middle_of_an_answer_leaves_no_trace_in_the_next() -> None:
    async with Room(FakeEngine(), progress=Progress("jacobi")).ready() as (pilot, room):
        await press(pilot, "enter", brings=lambda: room.engines[0].steps_done > 0)
        await press(pilot, "n", "enter", brings=lambda: room.at("window", 1))
        lesson = room.screen.lesson
        assert len(lesson.runs) == 1 and lesson.runs[0].passes == 6
        assert [step.index for step in lesson.runs[0].steps] == list(range(6))


@pytest.mark.full
async def test_a_key_that_skips_shows_the_result_of_a_prediction_first() -> None:
    engine = FakeEngine(answers=(SHORT,), hold_steps=True)
    async with Room(engine).ready() as (pilot, room):
        async with brings(lambda: room.at("one_token", 1), pilot):
            await pilot.press("enter", "enter")
            engine.release(5)
        async with brings(lambda: (room.place, room.screen.lesson.page.outcome) == (("one_token", 2), None), pilot):
            await pilot.press("enter", "1", "left", "n", "n")
        await act(pilot, engine.release, brings=lambda: room.screen.lesson.page.outcome is not None)
        await press(pilot, "n", brings=lambda: room.place == ("jacobi", 0))


async def test_one_goes_on_where_one_was(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "learn.json")
    async with Room(file=file).ready() as (pilot, first):
        await press(pilot, "enter", brings=lambda: first.at("one_token", 1))
        await press(pilot, "enter", "2", brings=lambda: first.screen.lesson.page.outcome is not None)
        await pilot.press("q")
    progress, notice = file.read()
    assert (progress.scene, progress.card, progress.choices, progress.right, notice) == ("one_token", 2, [1], 1, "")

    async with Room(progress=progress, file=file).ready() as (pilot, second):
        await until(lambda: second.at("one_token", 2) and second.screen.lesson.page.outcome is not None, pilot)
        assert second.screen.lesson.page.right and second.card.chosen == 1


@pytest.mark.full
async def test_behind_the_last_card_enter_leaves_and_the_next_time_begins_anew(tmp_path: Path) -> None:
    file, last = ProgressFile(tmp_path / "learn.json"), CHAPTERS[-1]
    room = Room(progress=Progress(last.name, len(last.cards) - 1), file=file)
    async with room.app.run_test(size=(80, 24)) as pilot:
        await until(lambda: room.screen.lesson.at_last_card, pilot)
        async with brings(lambda: room.app.return_code == 0, pilot):
            await pilot.press("n")  # there is no next scene, and this leaves too
    assert file.read()[0].scene == SCENES[0].name


async def test_an_engine_that_ends_is_said_and_f5_goes_on_with_the_scene() -> None:
    async with Room(FakeEngine(), FakeEngine()).ready() as (pilot, room):
        await press(pilot, "enter", brings=lambda: room.at("one_token", 1))
        await act(pilot, room.engines[0].die, brings=lambda: "F5 starts it again" in room.card.hint)
        await press(pilot, "f5", brings=lambda: room.engines[1].steps_done == 5 and room.at("one_token", 1))
        assert room.card.text.startswith("5 passes")


async def test_in_the_smallest_terminal_a_card_can_be_read_to_its_end_and_says_what_to_do() -> None:
    async with Room(FakeEngine(), FakeEngine()).ready(size=(40, 10)) as (pilot, room):

        def shown() -> str:
            strips = room.screen._compositor.render_strips()
            return " ".join(" ".join(strip.text for strip in strips).split())

        last = " ".join(room.card.text.split()[-3:])
        assert "Enter goes on" in shown()
        await press(pilot, *["down"] * len(room.card.text.split()), brings=lambda: last in shown())
        await act(pilot, room.engines[0].die, brings=lambda: "this scene goes on" in shown())
        assert "The engine has ended. F5 starts it again" in shown()


async def test_an_engine_that_does_not_take_the_step_that_a_lesson_waits_for_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Room(FakeEngine(hold_steps=True)).ready() as (pilot, room):
        await press(pilot, "enter", brings=lambda: room.session.state is State.ANSWERING)
        assert room.session.most_silence is not None
        monkeypatch.setitem(SILENCE_SECONDS, State.ANSWERING, -1.0)
        room.screen.silence.look()
        assert room.screen.query_one(StatusLine).activity.startswith("no word from the engine")


async def test_while_the_model_loads_the_card_says_so() -> None:
    room = Room(FakeEngine(hold_loading=True))
    async with room.app.run_test(size=(80, 24)) as pilot:
        await until(lambda: room.screen.query_one(StatusLine).activity.startswith("reading the weights"), pilot)
        await press(pilot, "enter", brings=lambda: room.card.text.startswith("The model is being loaded."))
        await act(pilot, room.engines[0].finish_loading, brings=lambda: room.card.text.startswith("5 passes"))


async def test_while_the_model_loads_the_panels_are_those_of_the_decoder_of_the_scene() -> None:
    """They were those of plain decoding."""
    room = Room(FakeEngine(hold_loading=True), progress=Progress("hidden_transfer"))
    async with room.app.run_test(size=(120, 40)) as pilot:
        await until(lambda: room.screen.query_one(StatusLine).activity.startswith("reading the weights"), pilot)
        assert room.screen.query_one("#lens").display and not room.screen.query_one(WindowPanel).display
        assert room.screen.query_one(StatusLine).decoder == "hidden transfer"


@pytest.mark.full
async def test_an_engine_that_dies_in_an_answer_leaves_nothing_stuck() -> None:
    async with Room(FakeEngine(hold_steps=True)).ready() as (pilot, room):
        await press(pilot, "enter", brings=lambda: len(room.engines[0].questions) == 1)
        await act(pilot, room.engines[0].fail_fatally, brings=lambda: room.card.text == MISSED)
        await press(pilot, "n", brings=lambda: room.place == ("jacobi", 0))


async def test_what_a_pass_costs_is_asked_for_and_drawn_where_a_card_is_about_it() -> None:
    async with Room(FakeEngine(), progress=Progress("one_token", 1)).ready((120, 40)) as (pilot, room):
        panel = room.screen.query_one(CostPanel)
        await until(lambda: room.at("one_token", 1) and "not measured here" in "".join(lines(panel)), pilot)
        assert room.engines[0].costs_watched
        await press(pilot, "enter", brings=lambda: not panel.display)


async def test_pseudo_states_are_asked_for_with_what_passes_cost() -> None:
    async with Room(FakeEngine(), progress=Progress("hidden_transfer", 1)).ready((120, 40)) as (pilot, room):
        await until(lambda: room.at("hidden_transfer", 1), pilot)
        assert room.engines[0].watched and room.engines[0].costs_watched
        assert room.screen.lesson.runs[-1].last.lens is not None


async def test_low_terminals_show_the_panel_of_the_card_and_high_ones_all() -> None:
    problem = "learn.json is damaged: it is called learn.json.damaged now, and a new one is begun."
    async with Room(FakeEngine(), progress=Progress("window", 1), notice=problem).ready() as (pilot, room):
        await until(lambda: room.at("window", 1), pilot)

        def shown() -> set[str | None]:
            return {panel.id for panel in room.screen.query(Panel) if panel.region.area} - {"lesson", "slots"}

        assert shown() == {WINDOW}
        written = " ".join(line.text for line in room.screen.query_one(Transcript).lines)
        assert problem in " ".join(written.split())
        for width, height in ((120, 40), (200, 60)):
            async with brings(lambda: room.box.region.width and room.app.size.width == width, pilot):
                await pilot.resize_terminal(width, height)
            assert shown() >= {WINDOW, "pool", "speed"}
            assert room.box.region.right <= room.screen.query_one("#side").region.x
        async with brings(lambda: shown() == {WINDOW}, pilot):
            await pilot.resize_terminal(50, 24)
        assert room.screen.region.contains_region(room.box.region)
        size = room.box.content_size
        assert room.box.get_content_height(size, size, size.width) <= size.height


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_mask_can_be_reached_and_the_panels_are_explained(size: tuple[int, int]) -> None:
    async with Room(progress=Progress("window", 1)).ready(size) as (pilot, room):
        await until(lambda: room.at("window", 1), pilot)

        def seen() -> set[str | None]:
            return {panel.id for panel in room.screen.query(Panel) if panel.region.area} - {"lesson", "speed", "slots"}

        before, way_back = seen(), room.screen.query_one("#way-back", Label)
        for first, text in (("mask", "F10, F10: all panels"), ("biography", "F10: all panels")):
            await press(pilot, "f10", brings=lambda: str(way_back.content) == text)
            await until(lambda: first in seen(), pilot)
        await press(pilot, "f10", brings=lambda: seen() == before)
        await press(pilot, "question_mark", brings=shows(pilot, ExplainScreen))
        assert "Jacobi window" in " ".join(str(each.render()) for each in room.app.screen.query(Static))
        await press(pilot, "escape", brings=lambda: room.app.screen is room.screen)
        window = room.screen.query_one(WindowPanel)
        await act(pilot, lambda: click_on_title(window), brings=shows(pilot, ExplainScreen))
        await press(pilot, "escape", brings=lambda: room.app.screen is room.screen)
        await press(pilot, "f10", brings=lambda: seen() == {"mask"})
        await press(pilot, "enter", "1", brings=lambda: room.place == ("window", 2))
        assert seen() == {"mask"}, "the next card is about the same panel"


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_at_the_end_of_a_scene_and_on_a_question_mark_stand_two_questions_for_the_model(scene: Scene) -> None:
    async with Room(progress=Progress(scene.name, len(scene.cards) - 1, [0])).ready() as (pilot, room):
        await until(lambda: room.screen.lesson.at_last_card and scene.asks[1] in room.card.hint, pilot)
        assert len(scene.asks) == 2 and scene.asks[0] in room.card.hint
        await press(pilot, "question_mark", brings=shows(pilot, ExplainScreen))
        assert " ".join(scene.asks) in [str(each.render()) for each in room.app.screen.query(Static)]
        await press(pilot, "escape", brings=lambda: room.app.screen is room.screen)
        await press(pilot, "left", brings=lambda: not room.screen.lesson.at_last_card)
        assert scene.asks[0] not in room.card.hint


async def test_the_ten_questions_come_last_and_hide_their_answers_until_a_key() -> None:
    async with Room(progress=Progress("hidden_transfer")).ready() as (pilot, room):
        await press(pilot, "n", brings=lambda: room.place == ("questions", 0))
        for place in range(10):
            card = CHAPTERS[-1].cards[place]
            assert isinstance(card, Recall) and room.card.text == card.question
            assert "min left" in room.card.heading[1]
            await press(pilot, "enter", brings=lambda: room.card.text.endswith(card.answer))
            await press(pilot, "enter", brings=lambda: room.place == ("questions", place + 1))
        assert not room.engines[0].questions and "arXiv" in room.card.text


async def test_a_question_can_be_skipped_and_be_answered_later() -> None:
    """The only way on showed the answer first."""
    async with Room(progress=Progress("questions")).ready() as (pilot, room):
        assert "n: the next question" in room.card.hint
        await press(pilot, "n", brings=lambda: room.place == ("questions", 1))
        await press(pilot, "left", brings=lambda: room.place == ("questions", 0))
        card = CHAPTERS[-1].cards[0]
        assert isinstance(card, Recall) and room.card.text == card.question
        await press(pilot, "enter", brings=lambda: room.card.text == card.revealed)
        await press(pilot, "enter", brings=lambda: room.place == ("questions", 1))
        await press(pilot, *"n" * 9, brings=lambda: room.place == ("questions", 10))


async def test_what_comes_after_the_last_scene_is_not_called_a_scene() -> None:
    """Below "scene 7 of 7" stood "next scene"."""
    last = SCENES[-1]
    async with Room(progress=Progress(last.name, len(last.cards) - 1, [0])).ready() as (pilot, room):
        await until(lambda: room.screen.lesson.at_last_card, pilot)
        assert room.card.hint.endswith("\nEnter: ten questions") and "later, in the chat" in room.card.hint.lower()


def click_on_title(panel: Panel) -> None:
    """Click on the title of a panel, wherever it stands: panels move while an answer comes."""
    panel.post_message(Click(panel, 0, 0, 0, 0, 1, shift=False, meta=False, ctrl=False))


@pytest.mark.parametrize(
    ("scene", "card", "first", "named"),
    [
        ("window", 1, "Jacobi window", ["scene 1: speed", "scene 6: slots"]),
        ("pool", 1, "n-gram pool", ["scene 3: Jacobi window", "scene 1: speed"]),
        ("numbers", 1, "what a pass costs here", ["scene 3: Jacobi window", "scene 1: speed"]),
    ],
)
async def test_a_question_mark_explains_what_is_new_in_a_scene_and_names_the_scenes_of_the_rest(
    scene: str, card: int, first: str, named: list[str]
) -> None:
    """The same 250 words came again in scene after scene."""
    async with Room(FakeEngine(), progress=Progress(scene, card)).ready((120, 40)) as (pilot, room):
        await until(lambda: room.at(scene, card) and len(room.screen.query_one(LessonPanels).explanations()) > 1, pilot)
        texts = room.screen.query_one(LessonPanels).explanations()
        assert texts[0][0] == first and texts[-1][0] == ELSEWHERE and all(name in texts[-1][1] for name in named)
        assert sum(len(text.split()) for _, text in texts) <= MOST_EXPLAINED_WORDS
        speed = room.screen.query_one(SpeedPanel)
        await act(pilot, lambda: click_on_title(speed), brings=shows(pilot, ExplainScreen))
        assert [str(each.render()) for each in room.app.screen.query(Static)][:2] == ["speed", speed.explain()]


async def test_where_a_card_is_about_costs_no_panel_is_cut_to_its_title() -> None:
    async with Room(FakeEngine(), progress=Progress("numbers", 1)).ready((120, 40)) as (pilot, room):
        await until(lambda: room.at("numbers", 1), pilot)
        heights = [
            panel.region.height for panel in room.screen.query_one(LessonPanels).query(Panel) if panel.region.area
        ]
        assert min(heights) > 1, "only a title"


async def test_one_rate_is_given_of_an_answer_that_began_slowly() -> None:
    """Below the answer stood the tokens a second of all passes, and in the panel those of the timed ones."""
    async with Room(FakeEngine(), progress=Progress("numbers", 2, [0])).ready((120, 40)) as (pilot, room):
        await until(lambda: room.screen.lesson.page.outcome is not None, pilot)
        written = " ".join(line.text for line in room.screen.query_one(Transcript).lines)
        assert "tokens a pass" in written and "tok/s" not in written
        assert room.screen.query_one(SpeedPanel).tokens_per_second


async def test_card_and_speed_panel_say_the_same_of_times() -> None:
    """The card said "1.49 ÷ 2.9 = 0.5×", and the panel "slow motion: no times"."""
    async with Room(FakeEngine(), progress=Progress("numbers")).ready(size=(120, 40)) as (pilot, room):
        speed = room.screen.query_one(SpeedPanel)
        await press(pilot, "enter", brings=lambda: room.at("numbers", 1))
        await until(lambda: speed.verdict() == ["one by one: no times"], pilot)
        await press(pilot, "enter", "1", brings=lambda: "plain decoding" in room.card.text)
        quotient = speed.verdict()[-1].replace("≈", "=").split(" ÷ ")
        assert len(quotient) == 2 and all(part in room.card.text for part in (quotient[0], *quotient[1].split(" = ")))
        await press(pilot, "left", brings=lambda: room.place == ("numbers", 1))
        await until(lambda: speed.verdict() == ["one by one: no times"], pilot)


async def test_a_slider_moved_in_a_task_waits_for_the_end_of_the_answer_before_it() -> None:
    """It changed that answer, and "34 passes instead of 22" compared two settings with one."""
    engine = FakeEngine(hold_steps=True)
    async with Room(engine, progress=Progress("window")).ready() as (pilot, room):
        await press(pilot, "enter", brings=lambda: bool(engine.questions))
        await act(pilot, lambda: engine.release(6), brings=lambda: room.at("window", 1))
        await press(pilot, "enter", "1", brings=lambda: room.place == ("window", 2))
        await act(pilot, lambda: engine.release(1), brings=lambda: room.at("window", 2))
        await press(pilot, "enter", brings=lambda: room.place == ("window", 3))
        await act(pilot, lambda: engine.release(3), brings=lambda: room.at("window", 3))
        await press(pilot, "enter", brings=lambda: isinstance(room.app.focused, Slider))
        slider = room.app.focused
        assert isinstance(slider, Slider)
        await press(pilot, "left", "home", brings=lambda: slider.value == 1)
        await press(
            pilot, "f1", brings=shows(pilot, HelpScreen)
        )  # by the time it is read, the move would have been sent
        await press(pilot, "f1", brings=lambda: room.app.screen is room.screen)
        assert engine.settings.parameters["window"] == 5 and "ends first" in room.card.hint
        engine.release(2)
        await act(pilot, engine.release, brings=lambda: not room.screen.lesson.missing)
        assert engine.settings.parameters["window"] == 1 and slider.value == 1
        first = room.screen.lesson.runs[0]
        assert first.ended and {len(step.window.fresh) for step in first.steps if step.window is not None} == {5}


async def test_from_the_chat_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    monkeypatch.setattr(other_screens, "lesson_session", lambda: session_of(engine))
    async with Stage().running(size=(80, 24)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        before = stage.text
        entry = next(one for one in stage.screen.commands() if one.title == "Learn how it works")
        await act(pilot, entry.callback, brings=shows(pilot, LearnScreen))
        titles = entries(stage.app).keys()
        assert {"Go on", "Scene 4: The n-gram pool"} <= titles
        await press(pilot, "escape", brings=lambda: stage.app.screen is stage.screen and engine.closed)
        assert stage.text == before and not stage.engine.closed


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "The lessons need a terminal"),
        (["--restart", "--from", "2"], "--restart begins with the first scene"),
        (["--from", "9"], "--from"),
        (["--from", "8", "--export", "page.html"], "The ten questions have no page"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(cli.app, ["learn", *options])
    assert (result.exit_code, result.stdout) == (2, "") and sentence in " ".join(result.stderr.split())
