"""Any step of an answer on the screen can be looked at again, by keys and mouse; what runs goes on meanwhile."""

from pathlib import Path

import pytest
from textual.widgets import OptionList

from ladechat.app import LadechatApp
from ladechat.protocol import Pace
from ladechat.screens.chat.looking_back import STEPS_DROPPED
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.speed_panel import SpeedPanel
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.steps.answer_steps import NEVER_KNOWN
from ladechat.widgets.transcript.transcript import NO_TOKENS, Transcript
from tests.app.listed import kept, new_stage
from tests.app.stage import (
    SHOWN_ANSWER,
    Driver,
    Stage,
    answered,
    ask,
    begun,
    footer_has_room,
    footer_names,
    replaying,
    shows,
)
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, press, until

SIZE = (120, 40)


def looked_at(stage: Stage) -> tuple[int, int] | None:
    """The step that the panels show while one looks back, from 1, and how many there are."""
    found = stage.app.query_one(SidePanels).looked_at
    return None if found is None else (found.place + 1, len(found.answer))


def marked(app: LadechatApp) -> str:
    """The text that is marked in the conversation."""
    transcript = app.query_one(Transcript)
    return "".join(
        text
        for line in transcript.lines
        for text, ink in line.runs
        if ink.kind == "step" and (ink.turn, ink.step) == transcript._marked
    )


def said(stage: Stage, step: int) -> str:
    """What a step of the latest answer emitted, the first being 1."""
    return "".join(stage.app.query_one(SidePanels).answer.step(step - 1).pieces)


def place_of(app: LadechatApp, text: str) -> tuple[int, int]:
    """Column and line within the conversation of the latest token that is this text."""
    transcript = app.query_one(Transcript)
    for y, line in reversed(list(enumerate(transcript.lines))):
        column = transcript.styles.padding.left
        for run, _ in line.runs:
            if run == text:
                return column + len(run) - 1, y - transcript.scroll_offset.y + transcript.styles.padding.top
            column += len(run)
    raise AssertionError(f"{text!r} is no token of the conversation")


async def paused(pilot: Driver, stage: Stage, steps: int) -> None:
    """An answer of which so many steps are seen, and no more come unless they are asked for."""
    async with brings(lambda: len(stage.app.query_one(SidePanels).answer) == steps and stage.pace_has_keys, pilot):
        await ask(pilot, "One?")
        stage.engine.release(steps)
    await press(pilot, "space", brings=lambda: stage.engine.pace == 0)
    stage.engine.release()


async def test_arrows_walk_through_the_steps_of_a_paused_answer_and_escape_goes_to_the_newest() -> None:
    async with Stage(FakeEngine(hold_steps=True), decoder="lookahead").running(size=SIZE) as (pilot, stage):
        await paused(pilot, stage, 9)
        before = stage.app.query_one(SpeedPanel).rows(50, 10)
        for key, step in (("left", 8), ("left", 7), ("right", 8), ("home", 1), ("left", 1), ("end", 9), ("ctrl+b", 8)):
            if looked_at(stage) == (step, 9):  # there is none before it
                await pilot.press(key)
            else:
                await press(pilot, key, brings=lambda: looked_at(stage) == (step, 9))
            assert marked(stage.app).replace(" ", "") == said(stage, step).replace(" ", ""), "lines break at spaces"
            assert f"pass {step} of 9 of this answer" in stage.status
            assert stage.app.query_one(SpeedPanel)._steps == step
        assert stage.app.query_one("#timeline").display
        async with brings(lambda: looked_at(stage) is None and marked(stage.app) == "" and stage.asking, pilot):
            await pilot.press("escape")
        assert "back" in stage.status and not stage.app.query_one("#timeline").display
        assert stage.app.query_one(SpeedPanel).rows(50, 10) == before


async def test_at_the_newest_step_of_a_pause_the_right_arrow_takes_a_step() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running(size=SIZE) as (pilot, stage):
        await paused(pilot, stage, 3)
        await press(pilot, "left", "right", brings=lambda: looked_at(stage) == (3, 3))
        assert Pace(steps_per_second=0, step=True) not in stage.engine.commands
        await press(pilot, "right", brings=lambda: len(stage.app.query_one(SidePanels).answer) == 4)
        assert looked_at(stage) is None and stage.app.query_one(SpeedPanel)._steps == 4


@pytest.mark.full
async def test_an_answer_goes_on_while_its_panels_stay_and_a_question_ends_that() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running(size=SIZE) as (pilot, stage):
        await begun(pilot, stage, 6)
        await pilot.press("left", "left")
        shown = stage.app.query_one(SpeedPanel).rows(50, 10)
        await act(pilot, lambda: stage.engine.release(5), brings=lambda: "pass 4 of 11" in stage.status)
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)
        assert SHOWN_ANSWER in stage.text, "the text grows"
        assert stage.app.query_one(SpeedPanel).rows(50, 10) == shown
        await answered(pilot, stage, "Two?", times=2)
        assert looked_at(stage) is None
        speed = stage.app.query_one(SpeedPanel)
        assert speed._finished is not None and speed._steps == len(stage.app.query_one(SidePanels).answer)


async def test_a_click_on_a_token_or_a_bar_or_the_line_goes_to_its_step() -> None:
    stage = Stage(FakeEngine(answers=("Hello there, you. Ask away.", "A second answer, and no more.")))
    async with stage.app.run_test(size=SIZE) as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        side, transcript = stage.app.query_one(SidePanels), stage.app.query_one(Transcript)
        answer = side.answer
        place = next(place for place in range(len(answer)) if len(answer.step(place).token_ids) > 1)
        step = answer.step(place)
        async with brings(lambda: looked_at(stage) == (place + 1, len(answer)), pilot):
            await pilot.click(transcript, offset=place_of(stage.app, step.pieces[1]))
        assert marked(stage.app) == "".join(step.pieces)
        assert side.looked_at is not None
        token = side.looked_at.token
        assert [piece for each in side.looked_at.steps for piece in each.pieces][token] == step.pieces[1]
        chosen = stage.app.query_one(BiographyPanel)._history()
        assert chosen is not None and chosen.piece == step.pieces[1]

        speed = stage.app.query_one(SpeedPanel)
        await press(pilot, "end", brings=lambda: looked_at(stage) == (len(answer), len(answer)))
        await until(lambda: speed._steps == len(answer) and not speed.drawing.waits, pilot)
        row, width = speed._bar_lines[-1], speed.content_size.width
        cells = [bar.step for bar in speed._visible_bars(width) for _ in range(bar.cells)]
        at = width - len(cells) + cells.index(cells[-1] - 2)
        async with brings(lambda: looked_at(stage) == (len(answer) - 2, len(answer)), pilot):
            await pilot.click(speed, offset=(at + speed.styles.padding.left, row))

        line = stage.app.query_one("#timeline", SeekBar)
        async with brings(lambda: looked_at(stage) == (1, len(answer)), pilot):
            await pilot.click(line, offset=(line.styles.padding.left, 0))

        async with brings(lambda: "of an earlier answer" in stage.status and " there" in marked(stage.app), pilot):
            await pilot.click(transcript, offset=place_of(stage.app, " there"))
        assert stage.app.query_one(Prompt).has_focus
        stage.screen.view.presenter.answers.keep(0)
        async with brings(lambda: stage.notices == [STEPS_DROPPED], pilot):
            await pilot.click(transcript, offset=place_of(stage.app, "A"))


async def test_a_click_on_a_formatted_answer_says_how_its_tokens_are_shown() -> None:
    stage = Stage(FakeEngine(answers=("Hello **there**, you.",)))
    async with stage.app.run_test(size=SIZE) as pilot:
        await answered(pilot, stage, "One?")
        transcript = stage.app.query_one(Transcript)
        await press(pilot, "ctrl+g", brings=lambda: transcript.lines[4].text.strip() == "Hello there, you.")
        x, y = place_of(stage.app, "there")
        await pilot.click(transcript, offset=(x + 40, y))
        await pilot.click(transcript, offset=place_of(stage.app, "One?"))
        await press(pilot, "escape", brings=lambda: stage.screen.view.presenter.chosen is None)
        assert not stage.notices
        async with brings(lambda: stage.notices == [NO_TOKENS], pilot):
            await pilot.click(transcript, offset=(x, y))


async def test_a_click_on_a_formatted_answer_whose_steps_are_not_known_says_that(tmp_path: Path) -> None:
    write(tmp_path / "talks", "a", exchange("One?", "Hello **there**, you."))
    async with new_stage(tmp_path, opened=kept(tmp_path)[0]).running(SIZE) as (pilot, stage):
        transcript = stage.app.query_one(Transcript)
        await press(pilot, "ctrl+g", brings=lambda: any("Hello there" in line.text for line in transcript.lines))
        before = len(stage.notices)
        async with brings(lambda: stage.notices[before:] == [NEVER_KNOWN], pilot):
            await pilot.click(transcript, offset=place_of(stage.app, "there"))


@pytest.mark.parametrize("size", [(80, 24), SIZE, (200, 60)])
async def test_a_click_on_a_token_shows_what_else_was_likely_at_any_size(size: tuple[int, int]) -> None:
    stage = Stage(FakeEngine(answers=("Hello there, you. Ask away.",)))
    async with stage.app.run_test(size=size) as pilot:
        await answered(pilot, stage, "One?")
        panel, transcript = stage.app.query_one(BiographyPanel), stage.app.query_one(Transcript)
        before = bool(panel.region.area)

        def said() -> str:
            rows = panel.rows(*panel.content_size) if panel.region.area else []
            return " ".join(text for row in rows[: panel.content_size.height] for text, _ in row)

        async with brings(lambda: "‹·there›" in said(), pilot):
            await pilot.click(transcript, offset=place_of(stage.app, " there"))
        assert "The likeliest, at 90 %; then" in said() and "0.9 bits" in said()
        await press(pilot, "escape", brings=lambda: bool(panel.region.area) == before and looked_at(stage) is None)


@pytest.mark.full
async def test_a_drag_selects_text_and_looks_at_nothing() -> None:
    async with Stage().running(size=SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        transcript = stage.app.query_one(Transcript)
        x, y = place_of(stage.app, " keeps")
        async with brings(stage.screen.get_selected_text, pilot):
            await pilot.mouse_down(transcript, offset=(x, y))
            await pilot.hover(transcript, offset=(x + 4, y))
            await pilot.mouse_up(transcript, offset=(x + 4, y))
        assert looked_at(stage) is None


async def test_what_is_typed_is_typed_and_moves_the_cursor_again() -> None:
    async with Stage().running(size=SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        async with brings(
            lambda: looked_at(stage) is None and stage.app.query_one(Prompt).cursor_location == (0, 1), pilot
        ):
            await pilot.press("a", "b", "left")
        await press(pilot, "ctrl+b", brings=lambda: looked_at(stage))
        first = looked_at(stage)
        assert first is not None
        await press(pilot, "left", brings=lambda: looked_at(stage) == (first[0] - 1, first[1]))
        await press(pilot, "x", "left", "home", brings=lambda: stage.prompt == "axb")
        assert looked_at(stage) == (first[0] - 1, first[1])
        assert stage.app.query_one(Prompt).cursor_location == (0, 0)
        await press(pilot, "enter", brings=lambda: looked_at(stage) is None)


async def test_with_nothing_to_look_at_the_keys_mean_nothing_and_removed_answers_are_left() -> None:
    async with Stage().ready(size=SIZE) as (pilot, stage):
        await pilot.press("left", "ctrl+b")
        await answered(pilot, stage, "One?")
        assert looked_at(stage) is None
        answers = stage.screen.view.presenter.answers
        for key, latest in (("ctrl+r", 2), ("ctrl+l", None)):
            await press(pilot, "left", brings=lambda: looked_at(stage) is not None)
            await press(pilot, key, brings=lambda: answers.latest == latest and not stage.asking)
            assert looked_at(stage) is None


@pytest.mark.full
async def test_of_a_conversation_from_an_earlier_session_a_click_says_that_its_steps_are_not_known(
    tmp_path: Path,
) -> None:
    write(tmp_path, "1", exchange("Old?"))
    store = ConversationStore(tmp_path)
    async with Stage(store=store).ready(size=SIZE) as (pilot, stage):
        await press(pilot, "ctrl+o", brings=shows(pilot, ConversationsScreen))
        await until(lambda: stage.app.screen.query_one(OptionList).option_count == 1, pilot)
        await press(pilot, "enter", brings=lambda: "Old?" in stage.text)
        transcript = stage.app.query_one(Transcript)
        kinds = [[ink.kind for _, ink in line.runs] for line in transcript.lines]
        line = next(y for y, found in enumerate(kinds) if "answer" in found)
        async with brings(lambda: stage.notice == NEVER_KNOWN, pilot):
            await pilot.click(transcript, offset=(5, line + transcript.styles.padding.top))
        assert looked_at(stage) is None


async def test_at_its_end_an_answer_leaves_its_latest_step_that_accepted_drafts() -> None:
    answer = "A sentence of some words , and then one more."
    async with Stage(FakeEngine(answers=(answer,)), decoder="lookahead").running(size=(160, 48)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        steps = stage.app.query_one(SidePanels).answer
        telling = max(place for place in range(len(steps)) if len(steps.step(place).token_ids) > 1)
        assert telling < len(steps) - 1, "else the last step says enough"
        window, speed = stage.app.query_one(WindowPanel), stage.app.query_one(SpeedPanel)
        place = f"pass {telling + 1} of {len(steps)}"
        whole = f"{place}, the last that gave several tokens"
        short = f"{place}, last to accept"
        for width, title in (
            (90, f"Jacobi window · {whole} "),
            (54, f"Jacobi window · {short} "),
            (50, f"window · {short} "),
            (36, f"window · {place} "),
        ):
            assert "".join(text for text, _ in window.rows(width, 8)[0]).startswith(title)
        assert f"Jacobi window · {whole}" in dict(stage.app.query_one(SidePanels).explanations())
        assert speed._steps == len(steps) and speed._finished is not None
        async with brings(lambda: looked_at(stage) == (telling + 1, len(steps)) and whole in stage.status, pilot):
            await pilot.press("left")
        assert "Jacobi window" in dict(stage.app.query_one(SidePanels).explanations()), "the status line says which"
        await press(pilot, "left", brings=lambda: f"pass {telling} of {len(steps)} of this answer" in stage.status)


@pytest.mark.full
async def test_in_a_replay_a_click_goes_to_that_step_and_pauses(tmp_path: Path) -> None:
    stage = Stage(FakeEngine(answers=("The first answer.", "A second one.")), recorder=Recorder())
    stage.recorder.start(tmp_path / "talk.jsonl")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
    async with replaying(Recording.read(tmp_path / "talk.jsonl"), size=SIZE, playing=True) as (pilot, app, screen):
        await press(pilot, "end", brings=lambda: screen.player.at_end)
        speed, transcript = app.query_one(SpeedPanel), app.query_one(Transcript)
        await until(lambda: not speed.drawing.waits, pilot)
        steps = speed._steps
        row = speed._bar_lines[-1]
        async with brings(lambda: speed._steps == steps - 1, pilot):
            await pilot.click(speed, offset=(speed.size.width - 2 + speed.styles.padding.left, row))
        assert not screen.player.playing
        async with brings(lambda: speed._steps == 1, pilot):
            await pilot.click(transcript, offset=place_of(app, "The"))
        assert screen.player.turn is not None and screen.player.turn.number == 1
        assert app.query_one(StatusLine).mode == ""


@pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 48), marks=pytest.mark.full)])
async def test_the_footer_has_room_for_the_keys_that_act(size: tuple[int, int]) -> None:
    async with Stage(FakeEngine(hold_steps=True)).running(size=size) as (pilot, stage):

        def names() -> list[str]:
            return footer_names(stage.app)

        await paused(pilot, stage, 4)
        await press(pilot, "left", brings=lambda: names()[:4] == ["Newest", "Go on", "Back", "On"])
        assert footer_has_room(stage.app)
        async with brings(lambda: not stage.asking and "Back" in names() and "Stop" not in names(), pilot):
            await pilot.press("escape", "space")
        assert footer_has_room(stage.app)
        await press(pilot, "x", brings=lambda: "Explain" not in names())
        assert "Send" in names()


async def test_the_window_lends_the_arrow_keys_after_a_click_and_esc_gives_the_focus_back() -> None:
    async with Stage(decoder="lookahead").running(size=SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await press(pilot, "left", brings=lambda: looked_at(stage) is not None)
        window = stage.app.query_one(WindowPanel)
        await until(lambda: window.region.area > 0, pilot)
        async with brings(lambda: window.diagonal is not None, pilot):
            await pilot.click(window, offset=(8, 2))
        before, place = window.diagonal, looked_at(stage)
        await press(pilot, "right", brings=lambda: window.diagonal != before)
        assert looked_at(stage) == place, "the arrow key did not go to the next pass"
        await press(pilot, "escape", brings=lambda: window.diagonal is None)
        assert stage.app.focused is stage.app.query_one(Prompt) and looked_at(stage) == place
