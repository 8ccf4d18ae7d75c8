"""The whole app on a stage: with a scripted engine, and with what tests ask of its screen."""

from typing import Any

from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.selection import Selection

from ladechat.app import LadechatApp
from ladechat.protocol import Settings
from ladechat.screens.chat.screen import ChatScreen
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.session import Session
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.bars.message_line import ShownMessage
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.flow import safe
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.sliders.sliders import ParameterSlider, Sliders
from ladechat.widgets.transcript.transcript import Transcript
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import brings

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

    @property
    def engine(self) -> FakeEngine:
        return self.started[-1]

    @property
    def asking(self) -> bool:
        """Does a question wait for its answer, or for the rest of it?"""
        return self.session.asking

    def slider(self, parameter: str) -> ParameterSlider:
        """The slider of a parameter of the decoder."""
        shown = self.app.query_one(Sliders).parameter_sliders
        return next(slider for slider in shown if slider.parameter.name == parameter)

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


def notices_of(app: LadechatApp) -> list[str]:
    """All that the app says from now on, in order."""
    notices: list[str] = []

    def note(_: object, said: tuple[ShownMessage, ...]) -> None:
        notices.extend(message.text for message in said[-1:])

    app.watch_said = note  # type: ignore[attr-defined]  # Textual calls it by its name, before the app runs too
    return notices


def footer_names(app: App[Any]) -> list[str]:
    """What the keys in the footer do, from the left; the palette's is the last."""
    footer = app.screen.query_one(KeyFooter)
    return [key.description for key in (*footer.keys, footer.palette) if key is not None]


def footer_has_room(app: App[Any]) -> bool:
    """Is every key of the footer to be read?"""
    text = app.screen.query_one(KeyFooter).render_line(0).text
    keys = app.screen.query_one(KeyFooter).keys
    return all(key.shown in text and (key.group or key.description) in text for key in keys)


def opens(pilot: Driver, screen: type[Screen[Any]]) -> brings:
    """What is inside brings a screen of this kind to the front."""
    return brings(lambda: isinstance(pilot.app.screen, screen), pilot)


def burst(pilot: Driver, *keys: str) -> None:
    """Press keys as they come in one read, of a macro or over a slow line: nothing is drawn between them."""
    for key in keys:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def ask(pilot: Driver, text: str) -> None:
    pilot.app.query_one(Prompt).focus()
    pilot.app.query_one(Prompt).load_text(text)
    await pilot.press("enter")


async def answered(pilot: Driver, stage: Stage, text: str, times: int = 1) -> None:
    """Ask, and wait until that many answers are on the screen."""
    async with brings(lambda: not stage.asking and stage.text.count(" tokens a pass") == times, pilot):
        await ask(pilot, text)
