"""The whole app on a stage: with a scripted engine, and with what tests ask of its screen."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from textual import events
from textual.app import App, SystemCommand
from textual.pilot import Pilot
from textual.screen import Screen
from textual.selection import Selection

from ladechat.app import LadechatApp
from ladechat.preferences import SettingsFile
from ladechat.protocol import Asked, Settings, encode
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine import NewEngine
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from ladechat.session.session import Session
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.bars.message_line import ShownMessage
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.flow import safe
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.sliders.sliders import ParameterSlider, Sliders
from ladechat.widgets.transcript.transcript import Transcript
from tests import waiting
from tests.fake_engine import ANSWER, FakeEngine
from tests.session.streams import stream, turn, write
from tests.waiting import until

Driver = Pilot[int]
SHOWN_ANSWER = safe(ANSWER)


class Stage:
    """An app with fake engines: the one that runs, and those before it."""

    def __init__(
        self,
        *engines: FakeEngine,
        welcome: str = "",
        system: str | None = None,
        recorder: Recorder | None = None,
        decoder: str = "auto",
        store: ConversationStore | None = None,
        history: PromptHistory | None = None,
        opened: SavedConversation | None = None,
    ) -> None:
        self.engines = list(engines) or [FakeEngine()]
        self.started: list[FakeEngine] = []
        self.settings: list[Settings] = []
        self.recorder = recorder or Recorder()
        settings = Settings(decoder=decoder)
        conversation = Conversation(system, model="demo", store=store)
        self.session = Session(self._new_engine, settings, conversation, self.recorder)
        self.screen = ChatScreen(self.session, "demo", welcome, store=store, history=history, opened=opened)
        self.app = LadechatApp(self.screen, self.session)
        self.notices = notices_of(self.app)

    def _new_engine(self, settings: Settings) -> FakeEngine:
        engine = self.engines[len(self.started)]
        engine.settings = settings
        self.settings.append(settings)
        self.started.append(engine)
        return engine

    @asynccontextmanager
    async def running(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Driver, Self]]:
        """Run the app."""
        async with self.app.run_test(size=size) as pilot:
            yield pilot, self

    @asynccontextmanager
    async def ready(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Driver, Self]]:
        """Run the app, and wait until its model has loaded."""
        async with self.running(size) as (pilot, _):
            await until(lambda: self.activity == "ready", pilot)
            yield pilot, self

    @property
    def engine(self) -> FakeEngine:
        return self.started[-1]

    @property
    def asking(self) -> bool:
        """Does a question wait for its answer, or for the rest of it?"""
        return self.session.asking

    def in_front(self) -> bool:
        """Whether the chat is the uppermost screen."""
        return self.app.screen is self.screen

    def slider(self, parameter: str) -> ParameterSlider:
        """The slider of a parameter of the decoder."""
        shown = self.app.query_one(Sliders).parameter_sliders
        return next(slider for slider in shown if slider.parameter.name == parameter)

    @property
    def asked(self) -> list[str]:
        """The questions that the engine was asked, without what came before each."""
        return [question.messages[-1].content for question in self.engine.questions]

    @property
    def notice(self) -> str:
        """What the app has said last; "" if it has said nothing."""
        return self.notices[-1] if self.notices else ""

    @property
    def text(self) -> str:
        """All of the conversation, however it is wrapped."""
        chosen = self.app.query_one(Transcript).get_selection(Selection(None, None))
        return chosen[0] if chosen else ""

    @property
    def prompt(self) -> str:
        return self.app.query_one(Prompt).text

    @property
    def pace_has_keys(self) -> bool:
        """Are Space and its like no characters now?"""
        return "space" in self.app.query_one(Prompt).passed_on

    @property
    def activity(self) -> str:
        return self.app.query_one(StatusLine).activity

    @property
    def status(self) -> str:
        """The whole status line, as far as it has room."""
        return self.app.query_one(StatusLine).render_line(0).text


class Room(Stage):
    """A stage whose engines can have another model, and whose settings are kept."""

    def __init__(self, *engines: FakeEngine, path: Path | None = None, store: ConversationStore | None = None) -> None:
        super().__init__(*engines, store=store)
        self.models: list[str] = []
        file = SettingsFile(path) if path is not None else None
        self.screen = ChatScreen(self.session, "demo", store=store, engines=self._engines_of, settings_file=file)
        self.app = LadechatApp(self.screen, self.session, file)
        self.notices = notices_of(self.app)

    def _engines_of(self, model: str) -> NewEngine:
        self.models.append(model)
        return self._new_engine


def recorded_turns(folder: Path, turns: int = 2, steps: int = 6, pace: float = 0.5) -> Recording:
    """Return a recording of so many questions, each with an answer, and so many seconds between any two events."""
    numbers = range(1, turns + 1)
    events = [event for number in numbers for event in (Asked(turn=number, text="Why?"), *turn(number, steps=steps))]
    return Recording.read(write(folder / "talk.jsonl", *map(encode, stream(*events, pace=pace))))


@asynccontextmanager
async def replaying(
    recording: Recording, size: tuple[int, int] = (80, 24), *, playing: bool = False
) -> AsyncIterator[tuple[Driver, LadechatApp, ReplayScreen]]:
    """Run a replay, which waits for keys, however slow the machine is, unless it plays."""
    screen = ReplayScreen(recording)
    screen.player.playing = playing
    app = LadechatApp(screen)
    async with app.run_test(size=size) as pilot:
        await until(lambda: app.screen is screen, pilot)
        yield pilot, app, screen


def notices_of(app: LadechatApp) -> list[str]:
    """All that the app says from now on, in order."""
    notices: list[str] = []

    def note(_: object, said: tuple[ShownMessage, ...]) -> None:
        notices.extend(message.text for message in said[-1:])

    app.watch_said = note  # type: ignore[attr-defined]  # Textual calls it by its name, before the app runs too
    return notices


def entries(app: App[Any]) -> dict[str, SystemCommand]:
    """What the palette lists, by title."""
    return {entry.title: entry for entry in app.get_system_commands(app.screen)}


def footer_names(app: App[Any]) -> list[str]:
    """What the keys in the footer do, from the left; the palette's is the last."""
    footer = app.screen.query_one(KeyFooter)
    return [key.description for key in (*footer.keys, footer.palette) if key is not None]


def footer_has_room(app: App[Any]) -> bool:
    """Is every key of the footer to be read?"""
    text = app.screen.query_one(KeyFooter).render_line(0).text
    keys = app.screen.query_one(KeyFooter).keys
    return all(key.shown in text and (key.group or key.description) in text for key in keys)


def shows(pilot: Driver, screen: type[Screen[Any]]) -> Callable[[], bool]:
    """Is a screen of this kind in front?"""
    return lambda: isinstance(pilot.app.screen, screen)


def burst(pilot: Driver, *keys: str) -> None:
    """Press keys as they come in one read, of a macro or over a slow line: nothing is drawn between them."""
    for key in keys:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def ask(pilot: Driver, text: str, *, brings: Callable[[], object] | None = None) -> None:
    """Send a text, and wait for what that brings, if it is said."""
    async with nullcontext() if brings is None else waiting.brings(brings, pilot):
        pilot.app.query_one(Prompt).focus()
        pilot.app.query_one(Prompt).load_text(text)
        await pilot.press("enter")


async def begun(pilot: Driver, stage: Stage, steps: int, text: str = "One?") -> None:
    """Ask an engine that holds its steps, and wait until so many of the answer are seen."""
    async with waiting.brings(lambda: len(stage.app.query_one(SidePanels).answer) == steps, pilot):
        await ask(pilot, text)
        stage.engine.release(steps)


async def answered(pilot: Driver, stage: Stage, text: str, times: int = 1) -> None:
    """Ask, and wait until that many answers are on the screen."""
    await ask(pilot, text, brings=lambda: not stage.asking and stage.text.count(" tokens a pass") == times)
