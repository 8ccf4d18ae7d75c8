"""What the app looks like in the middle of an answer. A new look is accepted, once seen, with `--snapshot-update`."""

from collections.abc import Awaitable, Callable

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from ladechat.app import LadechatApp
from ladechat.protocol import Configure
from ladechat.screens.replay import ReplayScreen
from ladechat.session.replay import Recording
from ladechat.widgets.panel import Panel
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.speed_panel import SpeedPanel
from ladechat.widgets.transcript import Transcript
from tests.app.stage import Stage, answered, ask, wait_until
from tests.fake_engine import ANSWER, FakeEngine
from tests.session.streams import GOLDEN

Compare = Callable[..., bool]
Prepare = Callable[[Pilot[int]], Awaitable[None]]

SMALL, LARGE = (80, 24), (160, 48)


def new_stage(decoder: str = "lookahead") -> Stage:
    return Stage(FakeEngine(answers=("Hello. Ask away.", ANSWER)), welcome="Ask me something.", decoder=decoder)


def mid_answer(stage: Stage, *keys: str, until: str, theme: str = "textual-dark", plain: bool = False) -> Prepare:
    """The app in the middle of its second answer, up to the step with the word `until`; nothing moves by itself."""

    async def prepare(pilot: Pilot[int]) -> None:
        stage.app.theme = theme
        await wait_until(pilot, lambda: bool(stage.app.query(Prompt)) and stage.activity == "ready")
        stage.app.query_one(Prompt).cursor_blink = False
        if plain:
            await stage.engine.send(Configure(decoder="autoregressive"))
        await answered(pilot, stage, "Hello!")
        stage.engine.hold()
        await ask(pilot, "What is the n-gram pool?")
        await pilot.press(*keys)
        await wait_until(pilot, lambda: stage.activity == "answering …")
        stage.engine.release_until(until)
        await wait_until(pilot, lambda: stage.app.query_one(SpeedPanel)._steps == stage.engine.steps_done)
        await wait_until(pilot, lambda: all(panel._next_draw is None for panel in stage.app.query(Panel)))

    return prepare


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_an_answer_being_written(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage()
    assert snap_compare(stage.app, terminal_size=size, run_before=mid_answer(stage, until="token):"))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_a_decoder_that_chooses_by_itself(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage("auto")
    assert snap_compare(stage.app, terminal_size=size, run_before=mid_answer(stage, until="token):"))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_drafts_without_window_and_pool(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage("suffix")
    assert snap_compare(stage.app, terminal_size=size, run_before=mid_answer(stage, until="token):"))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_pseudo_states(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage("hidden_transfer")
    assert snap_compare(stage.app, terminal_size=size, run_before=mid_answer(stage, until="token):"))


def test_snapshot_of_pseudo_states_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stage = new_stage("hidden_transfer")
    assert snap_compare(stage.app, terminal_size=SMALL, run_before=mid_answer(stage, until="token):"))


def test_snapshot_of_selected_text(snap_compare: Compare) -> None:
    stage = new_stage()

    async def prepare(pilot: Pilot[int]) -> None:
        await mid_answer(stage, until="token):")(pilot)
        stage.screen.selections = {stage.app.query_one(Transcript): Selection(Offset(2, 4), Offset(30, 8))}
        await pilot.pause()

    assert snap_compare(stage.app, terminal_size=SMALL, run_before=prepare)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_the_light_theme(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage()
    prepare = mid_answer(stage, until="token):", theme="textual-light")
    assert snap_compare(stage.app, terminal_size=size, run_before=prepare)


def test_snapshot_of_the_demo_look(snap_compare: Compare) -> None:
    stage = new_stage()
    assert snap_compare(stage.app, terminal_size=LARGE, run_before=mid_answer(stage, "f4", until="token):"))


def test_snapshot_of_plain_decoding(snap_compare: Compare) -> None:
    stage = new_stage()
    assert snap_compare(stage.app, terminal_size=LARGE, run_before=mid_answer(stage, until="token):", plain=True))


def test_snapshot_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stage = new_stage()
    assert snap_compare(stage.app, terminal_size=LARGE, run_before=mid_answer(stage, until="token):"))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_a_replay(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = LadechatApp(ReplayScreen(Recording.read(GOLDEN[0])))

    async def prepare(pilot: Pilot[int]) -> None:
        await pilot.press("space", "home", *["right"] * 14)
        await wait_until(pilot, lambda: all(panel._next_draw is None for panel in app.query(Panel)))

    assert snap_compare(app, terminal_size=size, run_before=prepare)
