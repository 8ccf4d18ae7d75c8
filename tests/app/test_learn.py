"""The lessons on the screen: what each key does, how one goes on where one was, and how they are left."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladechat import cli
from ladechat.app import LadechatApp
from ladechat.keys import LEARN_KEYS
from ladechat.lessons.lesson import MISSED, Phase
from ladechat.lessons.progress import DAMAGED, Progress, ProgressFile
from ladechat.lessons.scene import WINDOW
from ladechat.lessons.scenes import SCENES
from ladechat.palette import Look
from ladechat.protocol import Settings
from ladechat.screens import learn_from_chat
from ladechat.screens.help import HelpScreen
from ladechat.screens.learn import MOST_NEW_TOKENS, LearnScreen
from ladechat.session.engine_session import EngineSession
from ladechat.session.single_questions import SingleQuestions
from ladechat.widgets.lesson_box import LessonBox
from ladechat.widgets.panel import Panel
from ladechat.widgets.slider import Slider
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.transcript import Transcript
from tests.app.stage import Driver, Stage, answered, wait_until
from tests.app.test_help import shown
from tests.fake_engine import FakeEngine

SHORT = "The pool keeps what the window has written."


def session_of(*engines: FakeEngine) -> EngineSession:
    left = list(engines)
    return EngineSession(lambda _: left.pop(0), Settings(), SingleQuestions(MOST_NEW_TOKENS, "demo"))


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
    def acting(self) -> list[str]:
        """Of the keys that answer a card, those that do something now: the footer shows them."""
        return [key for key in ("enter", "1", "2", "3", "4") if self.in_footer(key)]

    def in_footer(self, key: str) -> str:
        """What the footer says that a key does; "" if it says nothing."""
        active = self.screen.active_bindings.get(key)
        return active.binding.description if active is not None and active.binding.show else ""

    async def ready(self, pilot: Driver) -> None:
        await wait_until(pilot, lambda: self.screen.lesson.settings.decoder == self.screen.lesson.scene.decoder)

    async def told(self, pilot: Driver) -> None:
        await wait_until(pilot, lambda: self.screen.lesson.page.phase is not Phase.RUNNING)


async def test_a_scene_by_keys_alone() -> None:
    room = Room()
    async with room.app.run_test(size=(80, 24)) as pilot:
        await room.ready(pilot)
        await pilot.press("enter", "enter")
        await room.told(pilot)
        assert room.place == ("one_token", 1) and room.box.text.startswith("5 passes, 5 tokens.")
        assert room.engines[0].steps_done == 5 and room.engines[0].questions[0].fresh

        await pilot.press("space")
        assert room.acting == ["1", "2", "3"]
        await pilot.press("enter")
        assert room.box.hint == "Not yet: press a number first, 1 to 3."
        await pilot.press("1", "enter")
        await room.told(pilot)
        assert room.acting == ["enter"] and room.in_footer("left") == "Back" and "Not yet" not in room.box.hint
        page = room.screen.lesson.page
        assert (page.choice, page.outcome) == (0, 1) and "passes" in room.box.text

        await pilot.press("left", "backspace")
        assert room.place == ("one_token", 0)
        await pilot.press("enter")
        assert room.place == ("one_token", 1) and room.box.text.startswith("5 passes")
        assert room.screen.query_one("#sliders").disabled
        await pilot.press("enter", "enter")
        assert room.place == ("one_token", 3) and not room.screen.query_one("#sliders").disabled

        assert isinstance(room.app.focused, Slider) and room.app.focused.id == "slider-temperature"
        await pilot.press("enter")
        assert room.box.hint.startswith("Not yet: T is 0 now; move it to 1.") and not room.acting
        assert len(room.engines[0].questions) == 1
        assert (room.in_footer("left"), room.in_footer("backspace")) == ("Move", "Back")
        await pilot.press("right", "left", "left")
        assert room.place == ("one_token", 3) and room.app.focused.value == 0
        await pilot.press("end")
        await wait_until(pilot, lambda: not room.screen.lesson.missing)
        assert room.acting == ["enter"]
        await pilot.press("enter", "enter")
        await wait_until(pilot, lambda: "The same words" in room.box.text)
        assert len(room.engines[0].questions) == 2

        await pilot.press("enter", "enter")
        assert room.place == ("jacobi", 0)
        await pilot.press("p")
        assert room.place == ("one_token", 0)
        await pilot.press("f1")
        await wait_until(pilot, lambda: isinstance(room.app.screen, HelpScreen))
        await pilot.pause()
        text = shown(room.app)
        assert all(key.tooltip in text for key in LEARN_KEYS) and "W: how many positions ahead" in text
        await pilot.press("f1", "n", "n")
        assert room.place == ("window", 0)
        await wait_until(pilot, lambda: room.engines[0].settings.decoder == "lookahead")
        assert room.engines[0].settings.temperature == 0
        await pilot.press("f4")
        assert room.screen.query_one(Transcript).palette.look is Look.DEMO
        await pilot.press("escape")
        await wait_until(pilot, lambda: room.app.return_code == 0)
    assert room.engines[0].closed


async def test_a_scene_that_is_left_in_the_middle_of_an_answer_leaves_no_trace_in_the_next() -> None:
    room = Room(FakeEngine(), progress=Progress("jacobi"))
    async with room.app.run_test(size=(80, 24)) as pilot:
        await room.ready(pilot)
        await pilot.press("enter")
        await wait_until(pilot, lambda: room.engines[0].steps_done > 0)
        await pilot.press("n", "enter", "enter")
        await room.told(pilot)
        lesson = room.screen.lesson
        assert lesson.scene.name == "window" and len(lesson.runs) == 1 and lesson.runs[0].passes == 6
        assert [step.index for step in lesson.runs[0].steps] == list(range(6))


@pytest.mark.full
async def test_a_key_that_skips_shows_the_result_of_a_prediction_first() -> None:
    engine = FakeEngine(answers=(SHORT,), hold_steps=True)
    room = Room(engine)
    async with room.app.run_test(size=(80, 24)) as pilot:
        await room.ready(pilot)
        await pilot.press("enter", "enter")
        engine.release(5)
        await room.told(pilot)
        await pilot.press("enter", "1", "left", "n", "n")
        assert (room.place, room.screen.lesson.page.outcome) == (("one_token", 2), None)
        engine.release()
        await room.told(pilot)
        assert room.screen.lesson.page.outcome is not None
        await pilot.press("n")
        assert room.place == ("jacobi", 0)


async def test_one_goes_on_where_one_was(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "learn.json")
    first = Room(file=file)
    async with first.app.run_test(size=(80, 24)) as pilot:
        await first.ready(pilot)
        await pilot.press("enter", "enter")
        await first.told(pilot)
        await pilot.press("enter", "2", "enter")
        await first.told(pilot)
        await pilot.press("q")
    progress, notice = file.read()
    assert (progress.scene, progress.card, progress.choices, progress.right, notice) == ("one_token", 2, [1], 1, "")

    second = Room(progress=progress, file=file)
    async with second.app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: second.place == ("one_token", 2))
        await second.told(pilot)
        assert second.screen.lesson.page.right and second.box.chosen == 1


@pytest.mark.full
async def test_behind_the_last_card_enter_leaves_and_the_next_time_begins_anew(tmp_path: Path) -> None:
    file, last = ProgressFile(tmp_path / "learn.json"), SCENES[-1]
    room = Room(progress=Progress(last.name, len(last.cards) - 1, [0]), file=file)
    async with room.app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: room.screen.lesson.at_last_card)
        await pilot.press("n")  # there is no next scene, and this leaves too
        await wait_until(pilot, lambda: room.app.return_code == 0)
    assert file.read()[0].scene == SCENES[0].name


async def test_an_engine_that_ends_is_said_and_f5_goes_on_with_the_scene() -> None:
    room = Room(FakeEngine(), FakeEngine())
    async with room.app.run_test(size=(80, 24)) as pilot:
        await room.ready(pilot)
        await pilot.press("enter", "enter")
        await room.told(pilot)
        room.engines[0].die()
        await wait_until(pilot, lambda: "F5 starts it again" in room.box.hint)
        await pilot.press("f5")
        await wait_until(pilot, lambda: room.engines[1].steps_done == 5)
        await room.told(pilot)
        assert room.place == ("one_token", 1) and room.box.text.startswith("5 passes")


async def test_while_the_model_loads_the_card_says_so() -> None:
    room = Room(FakeEngine(hold_loading=True))
    async with room.app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: room.screen.query_one(StatusLine).activity.startswith("reading the weights"))
        await pilot.press("enter")
        await wait_until(pilot, lambda: room.box.text.startswith("The model is being loaded."))
        room.engines[0].finish_loading()
        await room.told(pilot)
        assert room.box.text.startswith("5 passes")


@pytest.mark.full
async def test_an_engine_that_dies_in_an_answer_leaves_nothing_stuck() -> None:
    room = Room(FakeEngine(hold_steps=True))
    async with room.app.run_test(size=(80, 24)) as pilot:
        await room.ready(pilot)
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(room.engines[0].questions) == 1)
        room.engines[0].fail_fatally()
        await wait_until(pilot, lambda: room.box.text == MISSED)
        await pilot.press("n")
        assert room.place == ("jacobi", 0)


async def test_low_terminals_show_the_panel_of_the_card_and_high_ones_all() -> None:
    room = Room(FakeEngine(), progress=Progress("window", 1), notice=DAMAGED)
    async with room.app.run_test(size=(80, 24)) as pilot:
        await room.ready(pilot)
        await wait_until(pilot, lambda: room.place == ("window", 1))
        await room.told(pilot)

        def shown() -> set[str | None]:
            return {panel.id for panel in room.screen.query(Panel) if panel.display} - {"lesson"}

        assert shown() == {WINDOW}
        written = " ".join(line.text for line in room.screen.query_one(Transcript).lines)
        assert DAMAGED in " ".join(written.split())
        for width, height in ((120, 40), (200, 60)):
            await pilot.resize_terminal(width, height)
            await wait_until(pilot, lambda: shown() >= {WINDOW, "pool", "speed"})
            assert room.box.region.right <= room.screen.query_one("#side").region.x
        await pilot.resize_terminal(50, 24)
        await wait_until(pilot, lambda: shown() == {WINDOW})
        assert room.screen.region.contains_region(room.box.region)
        size = room.box.content_size
        assert room.box.get_content_height(size, size, size.width) <= size.height


async def test_from_the_chat_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    monkeypatch.setattr(learn_from_chat, "lesson_session", lambda: session_of(engine))
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await answered(pilot, stage, "One?")
        before = stage.text
        entry = next(one for one in stage.screen.commands() if one.title == "Learn how it works")
        entry.callback()
        await wait_until(pilot, lambda: isinstance(stage.app.screen, LearnScreen))
        titles = {command.title for command in stage.app.get_system_commands(stage.app.screen)}
        assert {"Go on", "Scene 4: The n-gram pool"} <= titles
        await pilot.press("escape")
        await wait_until(pilot, lambda: stage.app.screen is stage.screen and engine.closed)
        assert stage.text == before and not stage.engine.closed


@pytest.mark.full
async def test_from_the_chat_an_answer_is_to_be_stopped_first() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press(*"Why", "enter")
        stage.screen.action_learn()
        await wait_until(pilot, lambda: stage.notices[-1:] == ["Stop the answer first (Esc)."])
        assert stage.app.screen is stage.screen


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "The lessons need a terminal"),
        (["--restart", "--from", "2"], "--restart begins with the first scene"),
        (["--from", "8"], "less than or equal to 7"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(cli.app, ["learn", *options])
    assert (result.exit_code, result.stdout) == (2, "") and sentence in " ".join(result.stderr.split())
