"""What of a step the side shows: by the size, by F10, and explained by `?` or a click."""

from itertools import combinations

import pytest
from textual.widget import Widget
from textual.widgets import Static

from ladechat.lessons import hidden_transfer, pool, window
from ladechat.screens.help.explain import ExplainScreen
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.sliders.slider import Slider
from tests.app.stage import Driver, Stage, begun, shows
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press

PANELS = ("window", "pool", "mask", "biography", "speed")


def visible(stage: Stage) -> set[str]:
    """The panels that have room on the screen."""
    return {name for name in PANELS if stage.screen.query_one(f"#{name}").region.area}


def explained(stage: Stage) -> str:
    return "\n".join(str(each.render()) for each in stage.app.screen.query(Static))


async def in_an_answer(pilot: Driver, stage: Stage) -> None:
    """Some steps of an answer, which goes on."""
    await begun(pilot, stage, 12)


async def test_with_much_room_mask_and_biography_are_beside_the_others() -> None:
    async with Stage(FakeEngine(hold_steps=True), decoder="lookahead").running(size=(200, 60)) as (pilot, stage):
        await in_an_answer(pilot, stage)
        assert visible(stage) == set(PANELS)
        parts: list[Widget] = [stage.app.query_one(f"#{name}") for name in PANELS]
        for one, other in combinations(parts, 2):
            assert not one.region.overlaps(other.region), (one, other)
        pool, mask = parts[1].region, parts[2].region
        assert pool.y == mask.y and pool.right < mask.x
        assert min(part.size.height for part in parts) >= 5
        async with brings(lambda: visible(stage) == {"window", "pool", "speed"}, pilot):
            await pilot.resize_terminal(120, 40)
        async with brings(lambda: visible(stage) == set(PANELS), pilot):
            await pilot.resize_terminal(160, 48)
        await press(pilot, "f10", brings=lambda: visible(stage) == {"mask", "speed"})


async def test_f10_shows_one_thing_first_and_then_all_again() -> None:
    async with Stage(FakeEngine(hold_steps=True), decoder="lookahead").running(size=(80, 24)) as (pilot, stage):
        await in_an_answer(pilot, stage)
        default = {"window", "pool", "speed"}
        assert visible(stage) == default
        for alone in ({"mask"}, {"biography", "speed"}, default):
            await press(pilot, "f10", brings=lambda: visible(stage) == alone)
        assert stage.slider("window").render_line(0).text.startswith("W ━"), "no room for its name"
        await press(pilot, "f10", brings=lambda: visible(stage) == {"mask"})
        answer = stage.app.query_one(SidePanels).answer
        await act(pilot, lambda: stage.engine.release(3), brings=lambda: len(answer) == 15)
        assert visible(stage) == {"mask"}, "steps do not change it"
        async with brings(shows(pilot, ExplainScreen), pilot):
            await pilot.resize_terminal(60, 16)
            await pilot.press("question_mark")
        assert "F2 shows them" in explained(stage), "nothing is beside the conversation that could be explained"


async def test_a_question_mark_explains_what_is_shown_unless_something_is_typed() -> None:
    async with Stage(FakeEngine(hold_steps=True), decoder="lookahead").running(size=(120, 40)) as (pilot, stage):
        await in_an_answer(pilot, stage)
        await press(pilot, "question_mark", brings=shows(pilot, ExplainScreen))
        text = explained(stage)
        assert "Jacobi window" in text and "speed" in text and "attention mask" not in text
        window = stage.slider("window").number
        assert "F6: four passes a second" in text
        named = [slider.render_line(0).text for slider in stage.app.query(Slider) if slider.display]
        assert [text.split("━")[0].split("●")[0] for text in named] == [
            "W window  ",
            "N n-gram  ",
            "G guesses ",
            "T temperature ",
            "P top-p ",
        ], "behind each letter its name, and tracks below each other"
        assert f"W = {window} guesses" in text
        assert f"W = {window}\nHow many" in text, "the label is not said twice"
        await press(pilot, "question_mark", brings=stage.in_front)
        assert stage.prompt == ""
        stage.app.query_one(Prompt).focus()
        async with brings(lambda: stage.prompt == "Why?" and visible(stage) == {"mask"}, pilot):
            await pilot.press("f10", "W", "h", "y", "question_mark")
        assert stage.app.screen is stage.screen
        await pilot.click("#mask", offset=(3, 2))
        assert stage.app.screen is stage.screen
        async with brings(shows(pilot, ExplainScreen), pilot):
            await pilot.click("#mask", offset=(3, 0))
        assert "slots went through the model at once" in explained(stage)
        assert "positions, with those" not in explained(stage), "what is not shown is not explained"
        await press(pilot, "escape", brings=stage.in_front)
        assert stage.prompt == "Why?"


@pytest.mark.parametrize(
    ("decoder", "model", "asks"),
    [
        ("lookahead", "demo", window.SCENE.asks),
        ("hidden_transfer", "demo", hidden_transfer.SCENE.asks),
        ("suffix", "demo", pool.SCENE.asks),
        ("lookahead", "org/Llama", ()),
    ],
)
async def test_a_question_mark_names_questions_where_the_model_can_answer_them(
    decoder: str, model: str, asks: tuple[str, ...]
) -> None:
    engine = FakeEngine()
    engine.model = model
    async with Stage(engine, decoder=decoder).ready(size=(120, 40)) as (pilot, stage):
        await press(pilot, "question_mark", brings=shows(pilot, ExplainScreen))
        assert ("ask the model" in explained(stage)) == bool(asks)
        assert " ".join(asks) in explained(stage)
