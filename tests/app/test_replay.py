"""The replay on the screen: step by step what the live app showed, and what each key does."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandList, CommandPalette
from textual.strip import Strip

from ladechat.app import LadechatApp
from ladechat.protocol import Configure, Failed, Step, TurnFinished
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.screens.view import welcome
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.seek_bar import Transport
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.panels.panel import Needs, Panel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.presenter import ENDED
from ladechat.widgets.sliders.sliders import Sliders
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, Stage, answered, ask, entries, footer_has_room, footer_names, replaying
from tests.fake_engine import FakeEngine
from tests.session.streams import GOLDEN
from tests.waiting import act, brings, press, until

Cells = list[list[tuple[str, str]]]
LEAVE = ("ctrl+q", "ctrl+c")
SIZES = [(80, 24), pytest.param((160, 48), marks=pytest.mark.full)]


def screen_of(app: LadechatApp) -> Cells:
    """Conversation and panels as they are on the terminal, each stretch of text with its style; and the status line,
    which has less room where the mark of a recording stands beside it, by its parts."""
    strips: list[Strip] = app.screen._compositor.render_strips()
    body = app.query_one("#body").region
    status = app.query_one(StatusLine)
    parts = ("model", "device", "dtype", "decoder", "facts", "memory", "activity")
    return [
        *([(segment.text, str(segment.style)) for segment in strips[y].simplify()] for y in body.line_range),
        [(part, getattr(status, part)) for part in parts],
    ]


async def settled(pilot: Driver) -> None:
    await until(lambda: not any(panel.drawing.waits for panel in pilot.app.query(Panel)), pilot)


def needs_of(app: LadechatApp) -> dict[Panel, Needs]:
    """The rows that each panel has come to need. They never become fewer, so they hang on all that was shown before."""
    return {panel: panel.needs() for panel in app.query(Panel)}


async def need(app: LadechatApp, needs: dict[Panel, Needs], pilot: Driver) -> None:
    """Have the panels of an app need the rows that those of another needed."""
    for here, needed in zip(app.query(Panel), needs.values(), strict=True):
        here._needed = needed
        here.redraw()
    await settled(pilot)


def moves(screen: ReplayScreen, pilot: Driver) -> brings:
    """What is inside brings the replay to another place."""
    place = screen.player.position
    return brings(lambda: screen.player.position != place, pilot)


class RecordedSession:
    """A live session of many turns, and what its screen showed after each step."""

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.path = path
        self.size = size
        self.screens: list[Cells] = []
        self.needs: list[dict[Panel, Needs]] = []
        self.stage = Stage(
            FakeEngine(answers=("First answer, and it is short.", "A second answer: 漢字 and\ttabs."), hold_steps=True),
            FakeEngine(answers=("After the restart there is more to say.",), hold_steps=True),
            welcome=welcome("auto"),
            system="Be brief.",
            recorder=Recorder(),
        )

    async def play(self) -> None:
        stage = self.stage
        stage.recorder.start(self.path)
        async with stage.app.run_test(size=self.size) as pilot:
            stage.screen.view.presenter.may_continue = False  # in a replay no answer can be continued, nor is that said
            await ask(pilot, "One?")
            await self._steps(pilot, 3)
            await stage.engine.send(Configure(decoder="lookahead", parameters={"window": 9}))
            await self._steps(pilot, 99)
            stage.engine.trim_next = True
            await ask(pilot, "Two?")
            await self._steps(pilot, 2)
            await press(pilot, "escape", brings=lambda: not stage.asking)
            stage.engine.fail_next = "message_too_long"
            await ask(pilot, "Far too long?", brings=lambda: stage.prompt == "Far too long?")
            await act(pilot, stage.engine.die, brings=lambda: "F5" in stage.activity)
            await press(pilot, "f5", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")
            await ask(pilot, "Three?")
            await self._steps(pilot, 99)
            await press(pilot, "ctrl+l", brings=lambda: "One?" not in stage.text)
            stage.app.clear_notifications()  # what the app says for a while is in no recording
            for decoder in ("suffix", "autoregressive", "auto", "lookahead"):
                await stage.engine.send(Configure(decoder=decoder, parameters={"ngram": 4}))
                await ask(pilot, f"With {decoder}?")
                await self._steps(pilot, 99)

    async def _steps(self, pilot: Driver, most: int) -> None:
        """Let steps go one by one, and look at the screen after each; behind the last one the answer ends."""
        engine, stage = self.stage.engine, self.stage
        await until(lambda: engine._turn is not None, pilot)
        side = stage.app.query_one(SidePanels)
        engine.hold_end = True
        for number in range(engine.steps_done + 1, engine.steps_done + 1 + min(most, len(engine._coming))):
            await act(pilot, lambda: engine.release(1), brings=lambda: len(side.answer) == number)
            await settled(pilot)
            self.screens.append(screen_of(stage.app))
            self.needs.append(needs_of(stage.app))
        if not engine._coming:
            await act(pilot, lambda: engine._finish("eos"), brings=lambda: not stage.asking)
            engine.hold()


@pytest.mark.parametrize("size", [pytest.param(SIZES[0], marks=pytest.mark.full), SIZES[1]], ids=["80x24", "160x48"])
async def test_a_replay_shows_step_by_step_what_the_live_app_showed(tmp_path: Path, size: tuple[int, int]) -> None:
    session = RecordedSession(tmp_path / "talk.jsonl", size)
    await session.play()
    recording = Recording.read(session.path)
    assert recording.notices == []
    assert len(session.screens) == sum(isinstance(event, Step) for event in recording.events) > 20
    columns, rows = size
    rows -= 1  # in the chat it is taken by the line with the system prompt
    async with replaying(recording, size=(columns, rows)) as (pilot, app, screen):
        for number, live in enumerate(session.screens):
            async with moves(screen, pilot):
                await pilot.press("right")
            await settled(pilot)
            assert screen_of(app) == live, f"right to step {number}"
        for number in range(len(session.screens) - 2, -1, -1):
            async with moves(screen, pilot):
                await pilot.press("left")
            await need(app, session.needs[number], pilot)
            assert screen_of(app) == session.screens[number], f"left to step {number}"
        steps = [place for place, event in enumerate(recording.events) if isinstance(event, Step)]
        for number in random.Random(3).sample(range(len(steps)), len(steps)):
            screen.go(steps[number] + 1)
            await need(app, session.needs[number], pilot)
            assert screen_of(app) == session.screens[number], f"jumped to step {number}"
        dies = next(place for place, event in enumerate(recording.events) if isinstance(event, Failed) and event.fatal)
        screen.go(dies + 1)
        assert app.query_one(StatusLine).activity == ENDED, "no key starts an engine here"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions and their answers, a second between any two events."""
    path = tmp_path_factory.mktemp("recorded") / "talk.jsonl"

    async def record() -> None:
        stage = Stage(FakeEngine(answers=("First answer.", "Second answer.")), recorder=Recorder())
        stage.recorder.start(path)
        async with stage.app.run_test() as pilot:
            for number, question in enumerate(("One?", "Two?"), start=1):
                await answered(pilot, stage, question, times=number)

    asyncio.run(record())
    return path


@pytest.fixture
def recording(recorded: Path) -> Recording:
    return Recording.read(recorded)


def text_of(app: LadechatApp) -> str:
    return "\n".join(line.text for line in app.query_one(Transcript).lines)


async def test_space_pauses_and_goes_on_and_the_speed_is_shown_and_bounded(recording: Recording) -> None:
    recording.times[:] = [second * 1e6 for second in recording.times]
    async with replaying(recording, playing=True) as (pilot, app, screen):
        transport = app.query_one(Transport)
        await until(lambda: transport.state == "▶ 1×", pilot)
        assert "Pause" in footer_names(app)
        await press(pilot, "space", brings=lambda: transport.state == "‖ 1×" and not screen.player.playing)
        await until(lambda: "Go on" in footer_names(app) and "Pause" not in footer_names(app), pilot)
        await press(pilot, "space", brings=lambda: transport.state == "▶ 1×" and screen.player.playing)
        await press(pilot, "plus", brings=lambda: "2×" in transport.state)
        await press(pilot, *["minus"] * 8, brings=lambda: "0.1×" in transport.state)


async def test_at_full_speed_it_comes_to_its_end_and_space_begins_anew(recording: Recording) -> None:
    recording.times[:] = [second / 1000 for second in recording.times]
    async with replaying(recording, playing=True) as (pilot, app, screen):
        await until(lambda: screen.player.at_end, pilot)
        assert "First answer." in text_of(app) and "Second answer." in text_of(app)
        assert app.query_one(Transport).state.startswith("■")
        await until(lambda: "Again" in footer_names(app), pilot)
        recording.times[:] = [second * 1e6 for second in recording.times]
        await press(pilot, "space", brings=lambda: screen.player.playing and "First answer." not in text_of(app))


async def test_the_end_of_a_recording_in_the_middle_of_an_answer_is_called_that(tmp_path: Path) -> None:
    lines = GOLDEN[-1].read_bytes().splitlines(keepends=True)
    steps = [number for number, line in enumerate(lines) if b'"event":"step"' in line]
    (cut := tmp_path / "cut.ladechat.jsonl").write_bytes(b"".join(lines[: steps[len(steps) // 2]]))
    async with replaying(Recording.read(cut)) as (pilot, app, screen):
        status = app.query_one(StatusLine)
        await press(pilot, "end", brings=lambda: status.activity == "the recording ends in the middle of this answer")
        assert "paused" not in status.render_line(0).text
        await press(pilot, "left", brings=lambda: status.activity == "answering …")
        assert screen.player.position < len(screen.recording.events)


async def test_questions_can_be_jumped_to(recording: Recording) -> None:
    async with replaying(recording) as (pilot, app, _):
        await press(pilot, "n", brings=lambda: "One?" in text_of(app) and "Two?" not in text_of(app))
        await press(pilot, "n", brings=lambda: "Two?" in text_of(app) and "Second" not in text_of(app))
        assert "question 2 of 2" in app.query_one(Transport).facts
        await press(pilot, "p", brings=lambda: "Two?" not in text_of(app))
        commands = entries(app)
        assert "Question 1: One?" in commands
        commands["Question 2: Two?"].callback()
        assert "Two?" in text_of(app) and "Second" not in text_of(app)


async def test_a_click_on_the_bar_goes_there_and_goes_on_if_it_was_going_on(recording: Recording) -> None:
    recording.times[:] = [second * 1e6 for second in recording.times]
    async with replaying(recording, playing=True) as (pilot, app, screen):
        transport = app.query_one(Transport)
        await until(lambda: "●" in transport.render_line(0).text, pilot)
        async with brings(lambda: screen.player.at_end and "Second answer." in text_of(app), pilot):
            await pilot.click(transport, offset=(transport.content_size.width, 0))
        bar = transport.render_line(0).text.index("━")
        async with brings(lambda: screen.player.position == 0 and not screen.player.playing, pilot):
            await pilot.click(transport, offset=(bar + 1, 0))
        async with brings(
            lambda: 0.3 < screen.player.position / len(recording.events) < 0.7 and screen.player.playing, pilot
        ):
            await pilot.press("space")
            await pilot.click(transport, offset=((bar + transport.content_size.width) // 2, 0))


async def test_a_question_that_looks_like_markup_is_listed_as_it_is(recording: Recording) -> None:
    turn = recording.turns[0]
    recording.turns[0] = replace(turn, question="Why [/b] [red]? \x1b[2J")
    async with replaying(recording, playing=True) as (pilot, app, _):
        await press(pilot, "space", "ctrl+p", brings=lambda: isinstance(app.screen, CommandPalette))
        listed = app.screen.query_one(CommandList)
        async with brings(lambda: ["[/b] [red]? ␛[2J" in str(one.prompt) for one in listed.options] == [True], pilot):
            await pilot.press(*"Question 1")
        assert "[/b] [red]? ␛[2J" in app.export_screenshot().replace("&#160;", " ")


def torn(recorded: Path, folder: Path) -> Path:
    """A copy of a recording, with half a line behind its end."""
    path = folder / "torn.jsonl"
    path.write_bytes(recorded.read_bytes() + b"{torn")
    return path


async def test_damage_of_the_file_is_told_and_sliders_show_what_was_and_cannot_be_moved(
    tmp_path: Path, recorded: Path
) -> None:
    async with replaying(Recording.read(torn(recorded, tmp_path))) as (pilot, app, _):
        await until(lambda: any("the last line is not complete" in message.text for message in app.said), pilot)
        await press(pilot, "end", brings=lambda: "Second answer." in text_of(app))
        slider = app.query_one(Sliders).parameter_sliders[0]
        value = slider.value
        await pilot.click(slider)
        slider.focus()
        async with brings(lambda: "Second answer." not in text_of(app), pilot):
            await pilot.press("home")  # which is the replay's
        assert slider.value == value and not slider.has_focus


@pytest.mark.parametrize(
    ("size", "key"), [((80, 24), "q"), *(pytest.param((160, 48), key, marks=pytest.mark.full) for key in LEAVE)]
)
async def test_the_footer_has_room_for_its_keys_and_some_leave(
    recording: Recording, size: tuple[int, int], key: str
) -> None:
    async with replaying(recording, size=size, playing=True) as (pilot, app, _):
        await until(lambda: footer_names(app)[:1] == ["Pause"], pilot)
        assert footer_has_room(app)
        await press(pilot, key, brings=lambda: app.return_code == 0)


@pytest.mark.parametrize(
    "path",
    [GOLDEN[0], *(pytest.param(path, marks=pytest.mark.full) for path in GOLDEN[1:])],
    ids=lambda path: path.name,
)
async def test_the_golden_recording_of_every_version_plays_forward_and_back(path: Path) -> None:
    async with replaying(Recording.read(path)) as (pilot, app, screen):
        await press(pilot, "end", brings=lambda: screen.player.at_end)
        whole = text_of(app)
        await press(pilot, *["left"] * 20, "home", brings=lambda: screen.player.position == 0 and text_of(app) != whole)
        await press(pilot, "end", brings=lambda: text_of(app) == whole)
        finished = [event for event in screen.recording.events if isinstance(event, TurnFinished)]
        assert all(event.text.split()[0] in whole for event in finished)


FROM_THE_FUTURE = """
{"event":"header","format":"ladechat","version":"4.7","program":"ladechat 9","model":"m","tokenizer":null,
"device":"cpu","dtype":"int3","settings":{"decoder":"oracle","parameters":{"depth":4,"calm":true}},"seed":null,"started":"2031-01-01"}
{"event":"ready","seq":1,"model":"m","model_type":"llama","tokenizer":"t","parameters":1,"layers":1,"vocabulary":9,
"context_length":64,"device":"cpu","dtype":"int3","chat_template":"checkpoint","eos_ids":[],"load_seconds":1,
"settings":{"decoder":"oracle","parameters":{"depth":4,"calm":true}},"decoders":[{"name":"oracle","label":"the oracle",
"help":"It knows.","mood":"calm","parameters":[{"name":"depth","label":"depth","help":"How far.","default":2,"most":8},
{"name":"a b!","label":"\\u001b[2J","help":"[/b]","default":1},{"name":"a-b","label":"漢字漢字漢字","help":"",
"default":0},{"name":"calm","label":"calm","help":"","default":false}]}]}
{"event":"prophecy","seq":2}
{"event":"asked","seq":2,"turn":1,"text":"When?"}
{"event":"turn_started","seq":3,"turn":1,"messages":[],"prompt_ids":[],"cached_tokens":0,"max_new_tokens":9,
"settings":{"decoder":"oracle","parameters":{"depth":4,"calm":true}}}
{"event":"step","seq":4,"turn":1,"index":0,"token_ids":[1,2,3],"pieces":["To","mor","row"],"logprobs":[0,0,0],
"origins":["vision","dream","model"],"timing":{"step_ms":9,"forward_ms":8,"slots":4,"cache_length":2},
"draft":{"token_ids":[1,2,7],"pieces":["To","mor","row!"],"parents":[-1,0,1],"sources":["vision","dream",""],
"verdicts":["accepted","accepted","rejected"]}}
{"event":"settings_applied","seq":5,"settings":{"decoder":"unheard of","parameters":{"x":1}}}
{"event":"closed","seq":5}
"""


async def test_a_recording_of_decoders_parameters_and_sources_that_nobody_knows_plays(tmp_path: Path) -> None:
    path = tmp_path / "future.jsonl"
    path.write_text(FROM_THE_FUTURE.strip().replace(",\n", ",") + "\n")
    async with replaying(Recording.read(path), size=(100, 30)) as (pilot, app, _):
        await press(pilot, "right", brings=lambda: "Tomorrow" in text_of(app))
        await settled(pilot)
        assert app.query_one(StatusLine).decoder == "the oracle"
        sliders = app.query_one(Sliders).parameter_sliders
        assert [(slider.parameter.name, slider.number) for slider in sliders] == [("depth", 4), ("a b!", 1), ("a-b", 0)]
        drafts = [strip.text for strip in app.query_one("#pool").render_lines(app.query_one("#pool").size.region)]
        assert any([mark for mark in line if mark in "✓✗"] == ["✓", "✓", "✗"] and "row!" in line for line in drafts)
        await press(pilot, "end", brings=lambda: app.query_one(StatusLine).decoder == "unheard of")
        assert app.query_one(Sliders).parameter_sliders == []
