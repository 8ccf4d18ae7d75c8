"""What the app looks like in the middle of an answer. A new look is accepted, once seen, with `--snapshot-update`."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.widgets import Input, OptionList

from ladechat.app import LadechatApp
from ladechat.protocol import Configure
from ladechat.screens.replay import ReplayScreen
from ladechat.session.conversation_store import ConversationStore
from ladechat.session.replay import Recording
from ladechat.widgets.panel import Panel
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.speed_panel import SpeedPanel
from ladechat.widgets.transcript import Transcript
from tests.app.stage import Stage, answered, ask, wait_until
from tests.fake_engine import ANSWER, FakeEngine
from tests.session.conversations import exchange, write
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


@pytest.mark.full
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_drafts_without_window_and_pool(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage("suffix")
    assert snap_compare(stage.app, terminal_size=size, run_before=mid_answer(stage, until="token):"))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_snapshot_of_pseudo_states(snap_compare: Compare, size: tuple[int, int]) -> None:
    stage = new_stage("hidden_transfer")
    assert snap_compare(stage.app, terminal_size=size, run_before=mid_answer(stage, until="token):"))


@pytest.mark.full
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


@pytest.mark.full
def test_snapshot_of_the_demo_look(snap_compare: Compare) -> None:
    stage = new_stage()
    assert snap_compare(stage.app, terminal_size=LARGE, run_before=mid_answer(stage, "f4", until="token):"))


@pytest.mark.full
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


def list_of_conversations(folder: Path, *keys: str, theme: str = "textual-dark") -> tuple[Stage, Prepare]:
    """The app with the list of some conversations, after these keys."""
    pool, longer = "What is the n-gram pool?", "Write a Python function that reverses a string, and say how it works"
    titles = [pool, "How do I choose W, N and G?", longer, "Why is it exact?", "Hello!", "Translate: Guten Morgen"]
    for day, title in enumerate([*titles, "What do the colours mean?", "Sort by length: pear, fig", "Good night"]):
        exchanges = [exchange(title), *[exchange()] * (day % 3)]
        write(
            folder,
            f"{day}",
            *exchanges,
            when=f"2026-03-{20 - day}T14:{10 + day}:00",
            title="Pools" if title == pool else "",
        )
    stage = Stage(store=ConversationStore(folder))

    async def prepare(pilot: Pilot[int]) -> None:
        stage.app.theme = theme
        await wait_until(pilot, lambda: bool(stage.app.query(Prompt)) and stage.activity == "ready")
        await pilot.press("ctrl+o")
        await pilot.pause()
        stage.app.screen.query_one("#search", Input).cursor_blink = False
        listed = stage.app.screen.query_one(OptionList)
        for _ in range(500):
            await pilot.pause(0.01)
            if listed.option_count:
                break
        await pilot.press(*keys)
        await pilot.pause()

    return stage, prepare


@pytest.mark.parametrize("size", [SMALL, (120, 40)], ids=["80x24", "120x40"])
def test_snapshot_of_the_conversations(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    stage, prepare = list_of_conversations(tmp_path, "down", "down")
    assert snap_compare(stage.app, terminal_size=size, run_before=prepare)


@pytest.mark.full
def test_snapshot_of_a_deleted_conversation(snap_compare: Compare, tmp_path: Path) -> None:
    stage, prepare = list_of_conversations(tmp_path, "down", "f8", theme="textual-light")
    assert snap_compare(stage.app, terminal_size=SMALL, run_before=prepare)
