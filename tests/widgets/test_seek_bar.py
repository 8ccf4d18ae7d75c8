"""Claims about the bar of a replay: what a click and a drag say."""

from textual.app import App, ComposeResult

from ladechat.widgets.bars.seek_bar import SeekBar, Transport
from tests.waiting import brings
from tests.widgets.hosting import move_mouse


class Host(App[None]):
    """A bar of 41 cells, and one behind words; both write down where one is to go."""

    def __init__(self) -> None:
        super().__init__()
        self.bar = SeekBar(id="bar")
        self.transport = Transport(id="transport")
        self.transport.state = "▶ 1×"
        self.bar.styles.width = self.transport.styles.width = 41
        self.said: list[tuple[str | None, float]] = []

    def compose(self) -> ComposeResult:
        yield self.bar
        yield self.transport

    def on_seek_bar_sought(self, message: SeekBar.Sought) -> None:
        self.said.append((message.bar.id, message.fraction))


async def test_a_click_says_where_and_the_bar_shows_what_it_is_told() -> None:
    host = Host()
    async with host.run_test() as pilot:
        async with brings(lambda: host.said == [("bar", 0.25)], pilot):
            await pilot.click(SeekBar, offset=(10, 0))
        host.bar.fraction = 0.25
        assert host.bar.render_line(0).text == "━" * 10 + "●" + "─" * 30


async def test_a_drag_goes_on_outside_the_bar_stays_within_it_and_ends_with_the_button() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.mouse_down("#bar", offset=(20, 0))
        await move_mouse(pilot, 79, 9)
        await move_mouse(pilot, 30, 9)
        await pilot.mouse_up("#bar", offset=(30, 0))
        await move_mouse(pilot, 5, 0)
        assert [fraction for _, fraction in host.said] == [0.5, 1.0, 0.75]
        await pilot.mouse_down("#bar", offset=(20, 0))
        await move_mouse(pilot, 79, 9, button=0)  # let go outside the terminal
        await move_mouse(pilot, 0, 0)
        assert len(host.said) == 4 and host.mouse_captured is None


async def test_words_beside_a_bar_take_no_click() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.click("#transport", offset=(2, 0))
        async with brings(lambda: host.said == [("transport", 0.0), ("transport", 1.0)], pilot):
            await pilot.click("#transport", offset=(6, 0))
            await pilot.click("#transport", offset=(40, 0))
        async with brings(lambda: "●" not in host.transport.render_line(0).text, pilot):
            host.transport.facts = ("so many words that no bar has room",)
        await pilot.click("#transport", offset=(40, 0))
        await pilot.pause()
        assert len(host.said) == 2
