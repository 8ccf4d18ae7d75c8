"""Claims about the slider: how it is moved, when it speaks, how it looks."""

from typing import ClassVar

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from ladechat.widgets.sliders.slider import Slider
from tests.waiting import brings, press, until


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
        assert message.control is self.slider
        self.said.append(message.value)

    def action_note(self, what: str) -> None:
        self.noted.append(what)

    def holds_mouse(self) -> bool:
        return self.mouse_captured is self.slider

    @property
    def text(self) -> str:
        return self.slider.render_line(0).text


async def quiet(pilot: Pilot[None], host: Host) -> None:
    """Wait until no change of the slider is waiting to be said."""
    await until(lambda: host.slider._settling is None, pilot)
    await pilot.pause()


async def drag(pilot: Pilot[None], x: int, y: int = 0, button: int = 1) -> None:
    """Move the mouse as a terminal reports it, with or without a button held."""
    pilot.app.screen._forward_event(
        events.MouseMove(None, x, y, 0, 0, button, False, False, False, screen_x=x, screen_y=y)
    )
    await pilot.pause()


@pytest.mark.parametrize("width", [12, 20, 60])
async def test_the_whole_width_is_used_at_any_value(width: int) -> None:
    host = Host(width)
    async with host.run_test():
        for value in (1, 2, 33, 63, 64):
            host.slider.value = value
            text = host.text
            assert len(text) == width
            assert text.startswith("W ")
            assert text.endswith(f" {value}")
            assert text.count("●") == 1
        assert host.text[width - 4] == "●", "the greatest value stands at the end of the track"


async def test_keys_move_by_one_and_by_much_and_stop_at_the_ends() -> None:
    host = Host()
    async with host.run_test() as pilot:
        slider = host.slider
        async with brings(lambda: slider.value == 8, pilot):
            slider.focus()
            await pilot.press("right")
        await press(pilot, "left", "down", brings=lambda: slider.value == 6)
        await press(pilot, "pageup", brings=lambda: slider.value == 13)
        await press(pilot, "pagedown", "pagedown", brings=lambda: slider.value == 1)
        await press(pilot, "end", "up", brings=lambda: slider.value == 64)
        await press(pilot, "home", "left", brings=lambda: slider.value == 1)


async def test_a_burst_of_keys_is_said_once_when_it_settles() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for _ in range(5):  # what keys do, but at once: between two keys a slow machine may take longer than to settle
            host.slider.action_move(1)
        await quiet(pilot, host)
        assert host.said == [12]


async def test_a_move_that_ends_where_it_began_is_not_said() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.slider.action_move(1)
        host.slider.action_move(-1)
        await quiet(pilot, host)
        assert host.said == []


async def test_a_value_from_outside_is_taken_over_clamped_and_not_echoed() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.slider.value = 99
        assert host.slider.value == 64
        async with brings(lambda: host.said == [63], pilot):
            host.slider.action_move(-1)


async def test_an_older_answer_does_not_move_the_knob_under_the_users_hand() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for _ in range(2):
            host.slider.action_move(1)
        host.slider.value = 8
        assert host.slider.value == 9
        await quiet(pilot, host)
        assert host.said == [9]
        host.slider.value = 8
        assert host.slider.value == 8


async def test_a_wish_that_equals_the_old_value_is_said_if_the_outside_has_moved_on() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.slider.action_move(1)
        host.slider.value = 20
        host.slider.action_move(-1)
        await quiet(pilot, host)
        assert host.said == [7]


async def test_typed_digits_become_the_value_on_enter() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.slider.focus()
        await press(pilot, "2", "8", "enter", brings=lambda: host.said == [28])
        assert host.slider.value == 28
        assert host.noted == [], "that Enter was the slider's"
        await press(pilot, "enter", brings=lambda: host.noted == ["enter"])


async def test_typed_digits_become_the_value_after_a_pause() -> None:
    host = Host()
    async with host.run_test() as pilot, brings(lambda: host.said == [9], pilot):
        host.slider.focus()
        await pilot.press("9")


async def test_typed_digits_are_corrected_clamped_or_forgotten() -> None:
    host = Host()
    async with host.run_test() as pilot:
        slider = host.slider
        async with brings(lambda: slider.value == 15, pilot):
            slider.focus()
            await pilot.press("1", "2", "backspace", "5", "enter")
        await press(pilot, "9", "9", "enter", brings=lambda: slider.value == 64)
        await press(pilot, "3", "escape", "escape", brings=lambda: host.noted == ["escape"])
        assert slider.value == 64
        await press(pilot, "5", "right", brings=lambda: slider.value == 6)


async def test_a_click_on_the_track_moves_the_knob_there() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        async with brings(lambda: host.slider.value == 1, pilot):
            await pilot.click(Slider, offset=(2, 0))
        async with brings(lambda: host.slider.value == 64, pilot):
            await pilot.click(Slider, offset=(16, 0))
        assert host.text[16] == "●"
        assert host.slider.has_focus
        assert host.said == [1, 64], "letting go says it at once"


async def test_a_click_beside_the_track_or_with_another_button_moves_nothing() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        await pilot.click(Slider, offset=(0, 0))
        await pilot.click(Slider, offset=(19, 0))
        await pilot.click(Slider, offset=(12, 0), button=3)
        assert not host.holds_mouse() and host.slider.value == 7


async def test_a_click_on_the_knob_leaves_a_value_that_shares_its_cell() -> None:
    host = Host(12)
    async with host.run_test() as pilot:
        host.slider.value = 5
        await pilot.click(Slider, offset=(host.text.index("●"), 0))
        await quiet(pilot, host)
        assert host.slider.value == 5
        assert host.said == []


async def test_a_drag_goes_on_outside_the_widget_and_ends_with_the_button() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        slider = host.slider
        async with brings(lambda: host.holds_mouse(), pilot):
            await pilot.mouse_down(Slider, offset=(4, 0))
        await drag(pilot, 70, 9)
        assert slider.value == 64
        await drag(pilot, 0, 9)
        assert slider.value == 1
        await drag(pilot, 9, 3)
        middle = slider.value
        assert 1 < middle < 64
        async with brings(lambda: not host.holds_mouse(), pilot):
            await pilot.mouse_up(offset=(9, 3))
        assert host.said[-1] == middle
        await drag(pilot, 16, 0)
        assert slider.value == middle


async def test_a_click_on_its_name_moves_nothing_and_one_on_its_track_does() -> None:
    host = Host(30)
    async with host.run_test() as pilot:
        host.slider.caption = "window"
        before = host.slider.value
        await pilot.click(Slider, offset=(len(f"{host.slider.label} wind"), 0))
        assert host.slider.value == before
        async with brings(
            lambda: host.slider.value > before and host.text.startswith(f"{host.slider.label} window ━"), pilot
        ):
            await pilot.click(Slider, offset=(26, 0))


async def test_a_button_let_go_unseen_ends_the_drag() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        await pilot.mouse_down(Slider, offset=(4, 0))
        value = host.slider.value
        await drag(pilot, 16, 0, button=0)
        assert host.slider.value == value
        assert not host.holds_mouse()


async def test_a_mouse_taken_away_ends_the_drag() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        await pilot.mouse_down(Slider, offset=(4, 0))
        pilot.app.capture_mouse(None)
        await pilot.pause()
        value = host.slider.value
        await drag(pilot, 16, 0)
        assert host.slider.value == value


async def test_the_wheel_moves_by_one() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        for kind in (events.MouseScrollUp, events.MouseScrollUp, events.MouseScrollDown):
            pilot.app.screen._forward_event(kind(None, 5, 0, 0, 0, 0, False, False, False, screen_x=5, screen_y=0))
            await pilot.pause()
        assert host.slider.value == 8
        await until(lambda: host.said == [8], pilot)


async def test_focus_is_seen_without_colour() -> None:
    host = Host(20)
    async with host.run_test() as pilot:
        pilot.app.screen.set_focus(None)
        await pilot.pause()
        plain = [segment.style and segment.style.reverse for segment in host.slider.render_line(0)]
        host.slider.focus()
        await pilot.pause()
        focused = [segment.style and segment.style.reverse for segment in host.slider.render_line(0)]
        assert not any(plain)
        assert any(focused)


async def test_a_single_possible_value_has_a_track_too() -> None:
    host = Host(20, minimum=3, maximum=3, value=3)
    async with host.run_test() as pilot:
        await pilot.click(Slider, offset=(9, 0))
        await pilot.press("right")
        assert host.slider.value == 3 and len(host.text) == 20


# --- parts of one ---------------------------------------------------------------------------------------------------


async def test_a_slider_of_parts_shows_and_takes_a_number_with_decimals() -> None:
    host = Host(minimum=1, maximum=20, value=18, unit=0.05)
    async with host.run_test() as pilot:
        assert host.slider.number == 0.9 and host.text.endswith("0.90")
        async with brings(lambda: host.slider.number == 0.95 and host.text.endswith("0.95"), pilot):
            host.slider.focus()
            await pilot.press("right")
        await quiet(pilot, host)
        await pilot.press("0", "full_stop", "7", "enter")
        await quiet(pilot, host)
        assert host.slider.number == 0.7
        assert host.said == [19, 14]


@pytest.mark.parametrize(("number", "shown"), [(0.72, "0.72"), (3.0, "3"), (0.04, "0.04")])
async def test_a_number_from_outside_that_no_unit_meets_is_shown_as_it_is(number: float, shown: str) -> None:
    host = Host(minimum=0, maximum=20, value=5, unit=0.1)
    async with host.run_test() as pilot:
        host.slider.show(number)
        await pilot.pause()
        assert host.text.endswith(f" {shown}") and host.slider.number == number and host.said == []
        host.slider.focus()
        await pilot.press("home", "end")
        await quiet(pilot, host)
        assert host.said == [20] and host.text.endswith("2.0")


async def test_a_lone_point_is_no_number_and_changes_nothing() -> None:
    host = Host(minimum=0, maximum=20, value=7, unit=0.1)
    async with host.run_test() as pilot:
        host.slider.focus()
        await pilot.press("full_stop", "enter")
        await quiet(pilot, host)
        assert host.slider.value == 7 and host.said == []
