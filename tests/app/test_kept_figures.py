"""Each saved answer has its line of figures, why it ended, and its last pass in the panels."""

from pathlib import Path

from msgspec.structs import replace

from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.panels.speed_panel import SpeedPanel
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import kept
from tests.app.stage import Driver, Stage, answered, ask, begun
from tests.fake_engine import ANSWER, FakeEngine, tokens
from tests.session.conversations import exchange, write
from tests.waiting import press, until

SIZE = (160, 50)
WHOLE = f"{len(tokens(ANSWER))} tokens · "


def figures(stage: Stage) -> list[str]:
    """The lines below the answers."""
    blocks = stage.app.query_one(Transcript)._blocks
    return [block.written for block in blocks if block.kind == "notice" and " tokens" in block.written]


def panels(stage: Stage) -> list[str]:
    """What the panels of passes and speed show."""
    kinds = (WindowPanel, PoolPanel, SpeedPanel)
    shown = [panel for kind in kinds for panel in stage.app.query(kind) if panel.region.area]
    return [panel.render_line(y).text.rstrip() for panel in shown for y in range(panel.size.height)]


async def stopped(pilot: Driver, stage: Stage, steps: int = 6) -> None:
    """Ask, and stop the answer after so many passes."""
    await begun(pilot, stage, steps)
    await press(pilot, "escape", brings=lambda: not stage.asking and len(figures(stage)) == 1)


def left(tmp_path: Path, stage: Stage, *engines: FakeEngine) -> Stage:
    """The conversation of an app that was left, in another one."""
    assert stage.screen.saved.store is not None
    stage.screen.saved.store.begin_new()
    store = ConversationStore(tmp_path / "talks")
    return Stage(*engines, store=store, decoder="lookahead", opened=kept(tmp_path)[0])


def stage_of(tmp_path: Path, engine: FakeEngine) -> Stage:
    return Stage(engine, store=ConversationStore(tmp_path / "talks"), decoder="lookahead")


async def test_a_variant_that_is_shown_again_has_its_figures_and_its_last_pass_is_in_the_panels(tmp_path: Path) -> None:
    engine = FakeEngine(answers=(ANSWER, "Another one, of fewer words.", "A third."))
    async with stage_of(tmp_path, engine).ready(SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        first, shown = figures(stage), panels(stage)
        assert "passes instead of" in "\n".join(shown)
        await press(pilot, "ctrl+r", brings=lambda: not stage.asking and "Another" in stage.text)
        second = figures(stage)
        await press(pilot, "ctrl+r", brings=lambda: not stage.asking and "third" in stage.text)
        await press(pilot, "alt+left", brings=lambda: figures(stage) == second != first)
        await press(pilot, "alt+left", brings=lambda: figures(stage) == first)
        await until(lambda: panels(stage) == shown, pilot)
        await press(pilot, "left", brings=lambda: panels(stage) != shown)
        await press(pilot, "escape", brings=lambda: panels(stage) == shown)


async def test_a_stopped_answer_that_is_reopened_says_so_and_how_it_goes_on_and_then_has_the_figures_of_both_parts(
    tmp_path: Path,
) -> None:
    async with stage_of(tmp_path, FakeEngine(hold_steps=True)).ready(SIZE) as (pilot, stage):
        await stopped(pilot, stage)
        line, shown = figures(stage), panels(stage)
        assert line[0].endswith(" · stopped · /continue goes on") and " 6 passes · " in line[0]
    async with (again := left(tmp_path, stage)).ready(SIZE) as (pilot, stage):
        await until(lambda: figures(stage) == line and panels(stage) == shown, pilot)
        await ask(pilot, "/continue", brings=lambda: not stage.asking and figures(stage)[0].startswith(WHOLE))
        steps = len(stage.screen.view.side.answer)
        line, shown = figures(stage), panels(stage)
        assert len(line) == 1 and f" {steps} passes · " in line[0] and " tok/s" in line[0]
        assert f"{steps} passes instead of {len(tokens(ANSWER))}" in "\n".join(shown)
        await press(pilot, "left", "home", brings=lambda: f"pass 1 of {steps} of this answer" in stage.status)
        await press(pilot, "end", brings=lambda: f"pass {steps} of {steps}" in stage.status)
    async with left(tmp_path, again).ready(SIZE) as (pilot, stage):
        await until(lambda: figures(stage) == line and panels(stage) == shown, pilot)


async def test_only_the_last_answer_says_how_it_goes_on(tmp_path: Path) -> None:
    async with stage_of(tmp_path, FakeEngine(hold_steps=True)).ready(SIZE) as (pilot, stage):
        await stopped(pilot, stage)
        stage.engine.release()
        await ask(pilot, "Two?", brings=lambda: not stage.asking and len(figures(stage)) == 2)
    async with left(tmp_path, stage).ready(SIZE) as (_, stage):
        assert figures(stage)[0].endswith(" · stopped") and "/continue" not in stage.text


async def test_an_answer_to_go_on_with_after_the_last_was_deleted_has_the_figures_of_both_parts(tmp_path: Path) -> None:
    async with stage_of(tmp_path, FakeEngine(hold_steps=True)).ready(SIZE) as (pilot, stage):
        await stopped(pilot, stage)
        stage.engine.release()
        await ask(pilot, "Two?", brings=lambda: not stage.asking and len(figures(stage)) == 2)
        await press(pilot, "alt+up", "delete", brings=lambda: len(figures(stage)) == 1)
        await ask(pilot, "/continue", brings=lambda: not stage.asking and figures(stage)[0].startswith(WHOLE))
        assert f" {len(stage.screen.view.side.answer)} passes · " in figures(stage)[0]


async def test_times_of_passes_that_were_slowed_down_are_in_no_line(tmp_path: Path) -> None:
    async with stage_of(tmp_path, FakeEngine(hold_steps=True)).ready(SIZE) as (pilot, stage):
        await press(pilot, "f6", brings=lambda: "4 passes/s" in stage.status)
        await stopped(pilot, stage)
        line, shown = figures(stage), panels(stage)
        assert "tok/s" not in line[0] and "one by one: no times" in shown
    async with left(tmp_path, stage).ready(SIZE) as (pilot, stage):
        await until(lambda: figures(stage) == line and panels(stage) == shown, pilot)
        await ask(pilot, "/continue", brings=lambda: not stage.asking and figures(stage)[0].startswith(WHOLE))
        assert " passes · " in figures(stage)[0] and "tok/s" not in figures(stage)[0]


async def test_of_an_answer_without_saved_steps_only_what_is_known_of_all_of_it_is_said(tmp_path: Path) -> None:
    begin = tokens(ANSWER)[:4]
    write(tmp_path / "talks", "a", replace(exchange("One?", "".join(begin)), token_ids=[5, 6, 7, 8]))
    store = ConversationStore(tmp_path / "talks")
    async with Stage(store=store, opened=kept(tmp_path)[0]).ready(SIZE) as (pilot, stage):
        assert figures(stage) == []
        await ask(pilot, "/continue", brings=lambda: not stage.asking and figures(stage) != [])
        answer = stage.screen.view.side.answer
        rest = sum(len(answer.step(place).token_ids) for place in range(len(answer)))
        assert figures(stage) == [f"{len(begin) + rest} tokens"]
