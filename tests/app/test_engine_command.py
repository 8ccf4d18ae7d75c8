"""A command of the user's as the engine, in the app: what is shown of its link, and what it changes."""

import asyncio
import tomllib
from pathlib import Path

from msgspec.structs import replace

from ladechat.app import LadechatApp
from ladechat.preferences import SettingsFile
from ladechat.protocol import Configure, Message, Pong
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.race import RaceScreen
from ladechat.session.engine import State
from ladechat.session.measuring import Measuring
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.race import Remarks
from ladechat.widgets.sliders.sliders import SamplingSlider, Sliders
from tests.app.stage import Driver, Stage, answered, ask, notices_of, replaying
from tests.fake_engine import FakeEngine
from tests.waiting import act, press, until

COMMAND = "ssh gpu-box ladechat engine --model owner/large"


class Elsewhere(Stage):
    """A stage whose engines are those of a command."""

    def __init__(self, *engines: FakeEngine, path: Path | None = None) -> None:
        super().__init__(*engines)
        file = SettingsFile(path) if path is not None else None
        self.screen = ChatScreen(self.session, "", command=COMMAND, settings_file=file)
        self.app = LadechatApp(self.screen, self.session, file)
        self.notices = notices_of(self.app)


async def measured(pilot: Driver, stage: Stage, ms: float, *, shows: str) -> None:
    """The link is measured, and the status line shows it."""
    await act(pilot, lambda: stage.engine._say(Pong(round_trip_ms=ms)), brings=lambda: shows in stage.status)


async def test_the_status_line_has_the_latency_of_the_link_until_that_is_lost() -> None:
    async with Elsewhere().ready((120, 30)) as (pilot, stage):
        assert "link" not in stage.status
        await measured(pilot, stage, 23.4, shows="link 23 ms")
        await measured(pilot, stage, 1.25, shows="link 1.2 ms")
        await act(pilot, stage.engine.die, brings=lambda: "has ended" in stage.activity)
        assert "link" not in stage.status and "/model" not in stage.activity


async def test_at_80_columns_the_link_is_shown_beside_the_model() -> None:
    async with Elsewhere().ready((80, 24)) as (pilot, stage):
        await measured(pilot, stage, 230.0, shows="link 230 ms")
        assert stage.status.startswith("demo model · ")


async def test_what_the_command_says_before_its_header_is_seen_while_it_is_waited_for() -> None:
    engine = Silent()
    async with Elsewhere(engine).running() as (pilot, stage):
        await until(lambda: "which says: job 7 is queued" in stage.activity, pilot)
        await act(pilot, engine.may_begin.set, brings=lambda: stage.activity == "ready")


class Silent(FakeEngine):
    """One that begins when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_begin = asyncio.Event()
        self.first_words = "job 7 is queued"

    async def start(self) -> None:
        await self.may_begin.wait()
        self.first_words = ""
        await super().start()


async def test_no_settings_are_shown_before_the_command_has_told_its_own() -> None:
    engine = Silent()
    async with Elsewhere(engine).running((120, 40)) as (pilot, stage):
        assert not stage.app.query_one(Sliders).region.area and not stage.app.query_one(WindowPanel).region.area
        await until(lambda: "which says" in stage.activity, pilot)
        assert "auto" not in stage.status
        engine.settings = replace(engine.settings, decoder="lookahead", temperature=0.5)
        await act(pilot, engine.may_begin.set, brings=lambda: stage.activity == "ready")
        temperature = stage.app.query_one("#slider-temperature", SamplingSlider)
        assert temperature.region.area and temperature.number == 0.5 and "lookahead" in stage.status


async def test_a_race_in_a_command_shows_the_way_to_it() -> None:
    engine = FakeEngine()
    race = Measuring(engine, [Message(role="user", content="Hi?")], ("autoregressive", "suffix"))
    app = LadechatApp(RaceScreen(race))
    engine._say(Pong(round_trip_ms=23.4))
    async with app.run_test(size=(120, 40)) as pilot:
        remarks = app.screen.query_one("#race-remarks", Remarks)
        await until(lambda: not race.running, pilot)
        await press(pilot, "end", brings=lambda: "round trip of 23 ms" in " ".join(remarks.sentences))


async def test_another_model_is_refused_and_the_name_stays_in_the_prompt() -> None:
    async with Elsewhere().ready() as (pilot, stage):
        await ask(pilot, "/model demo", brings=lambda: "a model of its own" in stage.notice)
        assert stage.prompt == "/model demo" and stage.session.state is State.READY


async def test_saving_names_the_command_and_no_model(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('model = "owner/small"\n')
    async with Elsewhere(path=path).ready() as (pilot, stage):
        stage.session.configure(Configure(temperature=0.7))
        await ask(pilot, "/save", brings=lambda: "begins with these settings" in stage.notice)
    saved = tomllib.loads(path.read_text())
    assert (saved["engine"], saved["model"], saved["temperature"]) == (COMMAND, "owner/small", 0.7)
    assert saved["decoder"] == "auto", "what the command begins with is its own choice"


async def test_a_replay_shows_the_latency_that_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "talk.ladechat.jsonl"
    async with Elsewhere().ready((120, 30)) as (pilot, stage):
        stage.recorder.start(path)
        await answered(pilot, stage, "One?")
        await measured(pilot, stage, 23.4, shows="link 23 ms")
    async with replaying(Recording.read(path), (120, 30)) as (pilot, app, screen):
        await press(pilot, "end", brings=lambda: "link 23 ms" in app.screen.query_one(StatusLine).render_line(0).text)
        assert screen.player.at_end


async def test_a_stuck_engine_whose_link_is_well_counts_as_silent() -> None:
    async with Elsewhere(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.asking)
        stage.session._run._silent_since -= 100.0
        stage.engine._say(Pong(round_trip_ms=23.4))
        await until(lambda: "no word from the engine" in stage.activity, pilot)
