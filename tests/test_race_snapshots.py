"""What a race looks like. A new look is accepted, once seen, with `--snapshot-update`."""

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.protocol import Message
from ladechat.screens.race import RaceScreen
from ladechat.session.measuring import Measuring
from ladechat.widgets.panel import Panel
from tests.app.stage import wait_until
from tests.fake_engine import FakeEngine

Compare = Callable[..., bool]
Prepare = Callable[[Pilot[int]], Awaitable[None]]

SIZES = [(80, 24), (120, 40), (200, 60)]
NAMES = ["80x24", "120x40", "200x60"]
MID_RACE = ("right",) * 18


def race() -> LadechatApp:
    messages = [Message(role="user", content="How does lookahead decoding work?")]
    return LadechatApp(RaceScreen(Measuring(FakeEngine(), messages)))


def after(app: LadechatApp, *keys: str, theme: str = "textual-dark") -> Prepare:
    """The race at a place where it stands still."""

    async def prepare(pilot: Pilot[int]) -> None:
        app.theme = theme
        await wait_until(pilot, lambda: isinstance(app.screen, RaceScreen) and app.screen.track is not None)
        await pilot.press("home", *keys)
        await wait_until(pilot, lambda: all(panel._next_draw is None for panel in app.screen.query(Panel)))

    return prepare


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
def test_snapshot_of_a_race(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = race()
    assert snap_compare(app, terminal_size=size, run_before=after(app, *MID_RACE))


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES, ids=NAMES)
def test_snapshot_of_its_end_in_the_light_theme(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = race()
    assert snap_compare(app, terminal_size=size, run_before=after(app, "end", theme="textual-light"))


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES[:2], ids=NAMES[:2])
def test_snapshot_of_a_race_without_colours(
    snap_compare: Compare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = race()
    assert snap_compare(app, terminal_size=size, run_before=after(app, *MID_RACE))


def test_snapshot_of_the_clock_of_seconds(snap_compare: Compare) -> None:
    app = race()
    assert snap_compare(app, terminal_size=SIZES[0], run_before=after(app, *MID_RACE, "c"))
