"""The line of keys at the bottom: what it shows, what a click in it does, and that it stays one widget."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, Self

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from ladechat.widgets.bars.key_footer import KeyFooter
from tests.waiting import brings, until

PACE = Binding.Group("Pace", compact=True)


class Keys(App[None]):
    """Keys that write down what they did; one of them can be put away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "note('a')", "Act"),
        Binding("b", "rest", "Rest"),
        Binding("c", "note('c')", "Slower", group=PACE, tooltip="Fewer."),
        Binding("d", "note('d')", "Faster", group=PACE),
    ]
    can_rest = True

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    @asynccontextmanager
    async def running(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Pilot[None], Self]]:
        """Run the app, and wait until its keys are shown."""
        async with self.run_test(size=size) as pilot:
            await until(lambda: self.line.startswith("a Act b Rest  c d  Pace "), pilot)
            yield pilot, self

    def compose(self) -> ComposeResult:
        yield KeyFooter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "rest" or self.can_rest

    def action_note(self, what: str) -> None:
        self.noted.append(what)

    @property
    def line(self) -> str:
        return self.query_one(KeyFooter).render_line(0).text


async def test_it_shows_the_keys_that_act_and_is_drawn_again_only_if_they_are_others() -> None:
    async with Keys().running() as (pilot, app):
        assert app.line.endswith("▏^p palette ") and len(app.line) == 80
        widgets, footer = list(app.query("*")), app.query_one(KeyFooter)
        drawn = footer.keys
        app.screen.refresh_bindings()
        await pilot.pause()
        assert footer.keys is drawn
        async with brings(lambda: app.line.startswith("a Act  c d  Pace "), pilot):
            app.can_rest = False
            app.screen.refresh_bindings()
        assert list(app.query("*")) == widgets, "no widget comes or goes, and nothing is laid out anew"


async def test_the_palettes_key_stands_at_the_same_distance_from_the_edge_at_any_width() -> None:
    async with Keys().running(size=(100, 5)) as (_, app):
        footer = app.query_one(KeyFooter)
        for width in range(14, 60):
            line = "".join(segment.text for segment in footer.segments(width))
            assert len(line) == width and line.endswith("▏^p palette "), width


async def test_a_key_that_has_no_room_is_left_out_and_none_is_cut() -> None:
    async with Keys().running() as (pilot, app):
        shown = {}
        for width in range(80, 9, -1):
            app.query_one(KeyFooter).styles.width = width
            await until(lambda: app.query_one(KeyFooter).size.width == width, pilot)
            shown[width] = app.line.partition("▏")[0].rstrip()
        assert set(shown.values()) == {"", "a Act", "a Act b Rest", "a Act b Rest  c d  Pace"}
        await pilot.click(KeyFooter, offset=(6, 0))
        assert app.noted == [], "what is not shown is not pressed"


async def test_a_click_presses_the_key_that_it_meets_and_pointing_at_one_says_more() -> None:
    async with Keys().running() as (pilot, app):
        for key, place in (("a", "Act"), ("d", "d  Pace")):
            async with brings(lambda: app.noted[-1:] == [key], pilot):
                await pilot.click(KeyFooter, offset=(app.line.index(place), 0))
        await pilot.click(KeyFooter, offset=(app.line.index("Pace"), 0))
        assert app.noted == ["a", "d"]
        async with brings(lambda: app.query_one(KeyFooter).tooltip == "Fewer.", pilot):
            await pilot.hover(KeyFooter, offset=(app.line.index("c d"), 0))


async def test_where_the_palette_has_no_room_a_click_in_its_place_does_not_open_it() -> None:
    async with Keys().running() as (pilot, app):
        place = app.line.index("palette")
        app.screen.add_class("-tiny")
        async with brings(lambda: app.noted == ["a"], pilot):
            await pilot.click(KeyFooter, offset=(place, 0))
            await pilot.click(KeyFooter, offset=(0, 0))
        assert "palette" not in app.line and len(app.screen_stack) == 1
