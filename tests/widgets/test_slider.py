"""Claims about the slider: how it is moved, when it speaks, how it looks."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Self

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from ladechat.widgets.sliders.slider import Slider
from tests.waiting import brings, press, until
from tests.widgets.hosting import move_mouse


class Host(App[None]):
    """One slider from 1 to 64, at 7, in the width asked for; it writes down what the slider says."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "note('escape')"), Binding("enter", "note('enter')")]

    def __init__(self, width: int = 40, minimum: int = 1, maximum: int = 64, value: int = 7, unit: float = 1) -> None:
        super().__init__()
        self.slider = Slider("W", value, minimum, maximum, unit=unit, id="window", tooltip="Columns of the window")
        self.slider.styles.width = width
        self.said: list[int] = []
        self.noted: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.slider

    def on_slider_changed(self, message: Slider.Changed) -> None:
        assert message.slider is self.slider
        self.said.append(message.value)

    def action_note(self, what: str) -> None:
        self.noted.append(what)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[Pilot[None], Self]]:
        """Run the app. The slider has the focus."""
        async with self.run_test() as pilot:
            yield pilot, self

    def holds_mouse(self) -> bool:
        return self.mouse_captured is self.slider

    @property
    def text(self) -> str:
        return self.slider.render_line(0).text


async def quiet(pilot: Pilot[None], host: Host) -> None:
    """Wait until no change of the slider is waiting to be said."""
    await until(lambda: host.slider._settling is None, pilot)
    await pilot.pause()


@pytest.mark.parametrize("width", [12, 20, 60])
async def test_the_whole_width_is_used_at_any_value(width: int) -> None:
    async with Host(width).running() as (_, host):
        for value in (1, 2, 33, 63, 64):
            host.slider.value = value
            assert len(host.text) == width and host.text.count("●") == 1
            assert host.text.startswith("W ") and host.text.endswith(f" {value}")
        assert host.text[width - 4] == "●", "the greatest value stands at the end of the track"


async def test_keys_move_by_one_and_by_much_and_stop_at_the_ends() -> None:
    async with Host().running() as (pilot, host):
        once = (("right", 8), ("left down", 6), ("pageup", 13))
        for keys, value in (*once, ("pagedown pagedown", 1), ("end up", 64), ("home left", 1)):
            await press(pilot, *keys.split(), brings=partial(lambda wanted: host.slider.value == wanted, value))


def moved(by: int) -> Callable[[Slider], None]:
    """What a key does, but at once: between two keys a slow machine may take longer than to settle."""
    return lambda slider: slider.action_move(by)


def shown(value: int) -> Callable[[Slider], None]:
    """A value comes from outside."""
    return lambda slider: setattr(slider, "value", value)


SETTLED: dict[str, tuple[list[Callable[[Slider], None]], int, list[int]]] = {
    "a burst of keys is said once": ([moved(1)] * 5, 12, [12]),
    "a move that ends where it began is not said": ([moved(1), moved(-1)], 7, []),
    "a value from outside is clamped and not said again": ([shown(99)], 64, []),
    "what moves from a value from outside is said": ([shown(99), moved(-1)], 63, [63]),
    "an older value from outside does not move the knob under the hand": ([moved(1), moved(1), shown(8)], 9, [9]),
    "the old value is said if the outside has moved on": ([moved(1), shown(20), moved(-1)], 7, [7]),
}


@pytest.mark.parametrize("claim", SETTLED)
async def test_what_a_slider_says_once_it_settles(claim: str) -> None:
    acts, value, said = SETTLED[claim]
    async with Host().running() as (pilot, host):
        for act in acts:
            act(host.slider)
        assert host.slider.value == value
        await quiet(pilot, host)
        assert host.said == said
        host.slider.value = 8
        assert host.slider.value == 8, "what comes from outside then is taken over"


async def test_typed_digits_become_the_value_on_enter_or_after_a_pause() -> None:
    async with Host().running() as (pilot, host):
        await press(pilot, "2", "8", "enter", brings=lambda: host.said == [28])
        assert host.slider.value == 28 and host.noted == [], "that Enter was the slider's"
        await press(pilot, "enter", brings=lambda: host.noted == ["enter"])
        await press(pilot, "9", brings=lambda: host.said == [28, 9])


async def test_typed_digits_are_corrected_clamped_or_forgotten() -> None:
    async with Host().running() as (pilot, host):
        slider = host.slider
        await press(pilot, "1", "2", "backspace", "5", "enter", brings=lambda: slider.value == 15)
        await press(pilot, "9", "9", "enter", brings=lambda: slider.value == 64)
        await press(pilot, "3", "escape", "escape", brings=lambda: host.noted == ["escape"])
        assert slider.value == 64
        await press(pilot, "5", "right", brings=lambda: slider.value == 6)


async def test_a_click_on_the_track_moves_the_knob_there() -> None:
    async with Host(20).running() as (pilot, host):
        async with brings(lambda: host.slider.value == 1, pilot):
            await pilot.click(Slider, offset=(2, 0))
        async with brings(lambda: host.slider.value == 64, pilot):
            await pilot.click(Slider, offset=(16, 0))
        assert host.text[16] == "●" and host.slider.has_focus
        assert host.said == [1, 64], "letting go says it at once"


async def test_a_click_beside_the_track_or_with_another_button_moves_nothing() -> None:
    async with Host(20).running() as (pilot, host):
        await pilot.click(Slider, offset=(0, 0))
        await pilot.click(Slider, offset=(19, 0))
        await pilot.click(Slider, offset=(12, 0), button=3)
        assert not host.holds_mouse() and host.slider.value == 7


async def test_a_click_on_the_knob_leaves_a_value_that_shares_its_cell() -> None:
    async with Host(12).running() as (pilot, host):
        host.slider.value = 5
        await pilot.click(Slider, offset=(host.text.index("●"), 0))
        await quiet(pilot, host)
        assert host.slider.value == 5 and host.said == []


async def test_a_drag_goes_on_outside_the_widget_and_ends_with_the_button() -> None:
    async with Host(20).running() as (pilot, host):
        slider = host.slider
        async with brings(lambda: host.holds_mouse(), pilot):
            await pilot.mouse_down(Slider, offset=(4, 0))
        await move_mouse(pilot, 70, 9)
        assert slider.value == 64
        await move_mouse(pilot, 0, 9)
        assert slider.value == 1
        await move_mouse(pilot, 9, 3)
        middle = slider.value
        assert 1 < middle < 64
        async with brings(lambda: not host.holds_mouse(), pilot):
            await pilot.mouse_up(offset=(9, 3))
        assert host.said[-1] == middle
        await move_mouse(pilot, 16, 0)
        assert slider.value == middle


async def test_a_click_on_its_name_moves_nothing_and_one_on_its_track_does() -> None:
    async with Host(30).running() as (pilot, host):
        host.slider.caption = "window"
        before = host.slider.value
        await pilot.click(Slider, offset=(len(f"{host.slider.label} wind"), 0))
        assert host.slider.value == before
        async with brings(
            lambda: host.slider.value > before and host.text.startswith(f"{host.slider.label} window ━"), pilot
        ):
            await pilot.click(Slider, offset=(26, 0))


@pytest.mark.parametrize("taken_away", [False, True])
async def test_a_button_let_go_unseen_and_a_mouse_taken_away_end_the_drag(taken_away: bool) -> None:
    async with Host(20).running() as (pilot, host):
        await pilot.mouse_down(Slider, offset=(4, 0))
        if taken_away:
            pilot.app.capture_mouse(None)
            await pilot.pause()
        value = host.slider.value
        await move_mouse(pilot, 16, 0, button=int(taken_away))
        assert host.slider.value == value and not host.holds_mouse()


async def test_the_wheel_moves_by_one() -> None:
    async with Host(20).running() as (pilot, host):
        for kind in (events.MouseScrollUp, events.MouseScrollUp, events.MouseScrollDown):
            pilot.app.screen._forward_event(kind(None, 5, 0, 0, 0, 0, False, False, False, screen_x=5, screen_y=0))
            await pilot.pause()
        assert host.slider.value == 8
        await until(lambda: host.said == [8], pilot)


async def test_focus_is_seen_without_colour() -> None:
    async with Host(20).running() as (pilot, host):
        reversed_parts = []
        for focused in (host.slider, None):
            pilot.app.screen.set_focus(focused)
            await pilot.pause()
            reversed_parts.append([part.style and part.style.reverse for part in host.slider.render_line(0)])
        assert [any(parts) for parts in reversed_parts] == [True, False]


async def test_a_single_possible_value_has_a_track_too() -> None:
    async with Host(20, minimum=3, maximum=3, value=3).running() as (pilot, host):
        await pilot.click(Slider, offset=(9, 0))
        await pilot.press("right")
        assert host.slider.value == 3 and len(host.text) == 20


async def test_a_slider_of_parts_shows_and_takes_a_number_with_decimals_but_no_lone_point() -> None:
    async with Host(minimum=1, maximum=20, value=18, unit=0.05).running() as (pilot, host):
        assert host.slider.number == 0.9 and host.text.endswith("0.90")
        await press(pilot, "right", brings=lambda: host.slider.number == 0.95 and host.text.endswith("0.95"))
        await quiet(pilot, host)
        for keys in (["0", "full_stop", "7", "enter"], ["full_stop", "enter"]):
            await pilot.press(*keys)
            await quiet(pilot, host)
            assert host.slider.number == 0.7 and host.said == [19, 14]


@pytest.mark.parametrize(("number", "shown"), [(0.72, "0.72"), (3.0, "3"), (0.04, "0.04")])
async def test_a_number_from_outside_that_no_unit_meets_is_shown_as_it_is(number: float, shown: str) -> None:
    async with Host(minimum=0, maximum=20, value=5, unit=0.1).running() as (pilot, host):
        host.slider.show(number)
        await pilot.pause()
        assert host.text.endswith(f" {shown}") and host.slider.number == number and host.said == []
        await pilot.press("home", "end")
        await quiet(pilot, host)
        assert host.said == [20] and host.text.endswith("2.0")
