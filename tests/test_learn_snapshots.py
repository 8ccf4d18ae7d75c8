"""What the lessons look like. A new look is accepted, once seen, with `--snapshot-update`."""

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.lessons.lesson import Phase
from ladechat.lessons.progress import Progress
from ladechat.screens.learn import LearnScreen
from ladechat.widgets.panel import Panel
from tests.app.stage import wait_until
from tests.app.test_learn import Room
from tests.fake_engine import FakeEngine

Compare = Callable[..., bool]
Prepare = Callable[[Pilot[int]], Awaitable[None]]

pytestmark = pytest.mark.full
SIZES = [(80, 24), (120, 40), (200, 60)]
NAMES = ["80x24", "120x40", "200x60"]
PREDICTED = Progress("pool", 2, [0])
"""In the scene on the pool, where a prediction has been answered."""


def lessons() -> LadechatApp:
    return Room(FakeEngine(), progress=PREDICTED).app


def at_its_place(app: LadechatApp, theme: str = "textual-dark") -> Prepare:
    async def prepare(pilot: Pilot[int]) -> None:
        app.theme = theme
        screen = app.screen
        assert isinstance(screen, LearnScreen)
        await wait_until(pilot, lambda: screen.lesson.place == PREDICTED.card)
        await wait_until(pilot, lambda: screen.lesson.page.phase is Phase.TOLD)
        await wait_until(pilot, lambda: all(panel._next_draw is None for panel in screen.query(Panel)))

    return prepare


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
def test_snapshot_of_a_card(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = lessons()
    assert snap_compare(app, terminal_size=size, run_before=at_its_place(app))


def test_snapshot_of_a_card_in_the_light_theme(snap_compare: Compare) -> None:
    app = lessons()
    assert snap_compare(app, terminal_size=SIZES[0], run_before=at_its_place(app, "textual-light"))


def test_snapshot_of_a_card_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = lessons()
    assert snap_compare(app, terminal_size=SIZES[0], run_before=at_its_place(app))
