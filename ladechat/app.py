"""The Textual app: its screens, the actions that all screens share, and the functions that start it."""

import os
import weakref
from collections.abc import Iterable
from functools import partial

# Must be set before Textual is imported. At Textual's default of 60 frames a second, a key in the prompt may wait two
# frames (33 ms); at 240, half of all letters are drawn within 8 ms. Engine events are drawn `FRAMES_PER_SECOND` times a
# second.
os.environ.setdefault("TEXTUAL_FPS", "240")

from textual import on
from textual._styles_cache import StylesCache
from textual.app import SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widgets import Input, LoadingIndicator, TextArea

from ladechat.catalog import BUNDLED
from ladechat.engine_options import EngineOptions
from ladechat.garbage import collect_what_is_new, free_what_was_closed
from ladechat.keys import APP_KEY_GROUPS
from ladechat.lessons.progress import Progress, ProgressFile
from ladechat.lessons.scenes import questions_about
from ladechat.preferences import SettingsFile
from ladechat.protocol import Settings
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.help.command_search import CommandSearch
from ladechat.screens.help.explain import MASK_ALONE, TOO_FAST, ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.learn.lesson_session import lesson_session
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.screens.terminal.app_with_look import AppWithLook
from ladechat.screens.view import ConversationView, welcome
from ladechat.session.command_engine import engine_of
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine import EngineRun, EngineSource, NewEngine
from ladechat.session.measuring import Measuring
from ladechat.session.race import Comparison
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from ladechat.session.replaceable_engine import WayBack
from ladechat.session.session import Session
from ladechat.widgets.formatting import name_of
from ladechat.widgets.later import call_later, detach_long_tasks
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.too_small import TooSmall
from ladechat.widgets.units import in_unit

Opening = ChatScreen | ReplayScreen | RaceScreen | LearnScreen

SECONDS_BEFORE_FREEING = 1.0
"""Delay after a screen was closed. By then the screen below is drawn, and cancelled timers are gone."""

TRIES_TO_FREE = 4
"""How often a closed screen is looked for: a scan that finds it held leaves it out from then on."""

LEFT_OUT = ("Keys", "Screenshot")
"""Commands of Textual that are not in the palette: F1 shows the keys, and /export makes pictures."""


class LadechatApp(AppWithLook, inherit_bindings=False):
    """The app: shows one screen at a time, all in one theme.

    Args:
        opening: the first screen.
        session: the session with the engine, which is closed when the app ends; None: the screen has none.
        settings_file: has the theme and the look, and takes changes of them; None: nothing is saved.
    """

    CSS_PATH = "app.tcss"
    TITLE = "ladechat"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {CommandSearch}  # noqa: RUF012 - as Textual declares it

    def __init__(
        self, opening: Opening, session: Session | None = None, settings_file: SettingsFile | None = None
    ) -> None:
        super().__init__(settings_file)
        self._opening = opening
        self._session = session

    def get_default_screen(self) -> Screen[None]:
        """Return the opening screen, laid out for its size before the first frame; Textual would do so after it."""
        self.fit(self._opening, self.size)
        return self._opening

    def on_mount(self) -> None:
        detach_long_tasks(EngineRun.run)
        if self._settings_file is not None:
            self.begin_with_settings()
            if not self._settings_file.preferences.panels and isinstance(self._opening, ChatScreen | ReplayScreen):
                self._view.side.display = False
        self.follow_theme()
        self.screen_change_signal.subscribe(self, lambda _: self.clear_notifications(), immediate=True)

    async def on_unmount(self) -> None:
        """Close the engine, then the recording, however the app ends."""
        if self._session is not None:
            await self._session.close()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Stop the cursor from blinking: an idle app draws nothing."""
        if isinstance(event.widget, Input | TextArea):
            event.widget.cursor_blink = False

    @on(CommandPalette.Opened)
    def _rest_under_palette(self) -> None:
        """Stop redrawing the palette's loading indicator 16 times a second: the commands need no loading."""
        for indicator in self.screen.query(LoadingIndicator):
            indicator.auto_refresh = None
        self.screen.mount(TooSmall())

    # --- keys that all screens have -----------------------------------------------------------------------------------

    @property
    def _conversing(self) -> ChatScreen | ReplayScreen:
        """The uppermost chat or replay. Races and lessons have none, and bind no key that needs it."""
        screens = (self._opening, *self.screen_stack)
        return next(one for one in reversed(screens) if isinstance(one, ChatScreen | ReplayScreen))

    @property
    def _view(self) -> ConversationView:
        return self._conversing.view

    @property
    def _side(self) -> SidePanels:
        """The panels of the screen that is shown."""
        return self.screen.query_one(SidePanels) if isinstance(self.screen, LearnScreen) else self._view.side

    def action_page_up(self) -> None:
        """Scroll the conversation up by a page."""
        self._view.transcript.action_page_up()

    def action_page_down(self) -> None:
        """Scroll the conversation down by a page."""
        self._view.transcript.action_page_down()

    def action_toggle_panels(self) -> None:
        """Show or hide the panels."""
        self._view.side.display = not self._view.side.display
        self.save_settings(panels=self._view.side.display)

    def action_switch_format(self) -> None:
        """Switch answers between formatted Markdown and the raw text in the colours of its steps."""
        self._view.transcript.formatted = not self._view.transcript.formatted

    def action_fold(self) -> None:
        """Unfold long questions and thoughts, or fold them."""
        self._view.transcript.action_fold()

    def action_help(self) -> None:
        """Explain what is on the screen."""
        if isinstance(self.screen, Opening):
            subjects = APP_KEY_GROUPS if isinstance(self.screen, ChatScreen) else ()
            news = ("What was said just now", [(one.severity, one.text) for one in self.said_at_key])
            first = [section for section in (self.left_out, news) if section[1]]
            self.push_screen(HelpScreen(self.screen, self.screen.decoders, subjects, first, self.screen.unit))

    def action_explain(self, only: str = "") -> None:
        """Explain each panel, or the one with this id, with its numbers."""
        explanations = self._side.explanations(only)
        if explanations and isinstance(self.screen, ChatScreen) and not only:
            presenter = self._view.presenter
            mask = MASK_ALONE if presenter.now.server is None else ""
            explanations.append(("too fast?", in_unit(TOO_FAST, presenter.unit) + mask))
        if explanations and self._asks and not only:
            explanations.append(("ask the model", " ".join(self._asks)))
        self.push_screen(ExplainScreen(explanations))

    @property
    def _asks(self) -> tuple[str, ...]:
        """Two questions on what is shown, if the model can answer them: no other than the bundled one knows them."""
        if isinstance(self.screen, LearnScreen):
            return self.screen.lesson.scene.asks
        presenter = self._view.presenter
        if not isinstance(self.screen, ChatScreen) or presenter.now.model != name_of(BUNDLED):
            return ()
        return questions_about(presenter.now.settings.decoder)

    def action_messages(self) -> None:
        """Show the last messages, the latest first."""
        said = [(f"{when:%H:%M:%S} · {one.severity}", one.text) for when, one in reversed(self.messages)]
        self.push_screen(ExplainScreen(said or [("messages", "There was none yet.")]))

    def action_switch_view(self) -> None:
        """Switch to the next view of a step beside the conversation."""
        self._side.switch_view()

    def action_copy_answer(self) -> None:
        """Copy the last answer, or that to the chosen question, as the model wrote it."""
        if answer := next(self._view.presenter.answers_to_copy(), ""):
            self.copy_to_clipboard(answer)

    def pop_screen(self) -> AwaitComplete:
        """Close the uppermost screen, and free it once the one below is drawn."""
        screen = weakref.ref(self.screen)
        closing = super().pop_screen()
        self._free_when_closed(closing, screen)
        return closing

    def _free_when_closed(self, closing: AwaitComplete, screen: "weakref.ref[Screen[object]]") -> None:
        if closing.is_done:
            then = partial(self._free_closed, screen, TRIES_TO_FREE)
        else:
            then = partial(self._free_when_closed, closing, screen)
        call_later(self, SECONDS_BEFORE_FREEING, then)

    def _free_closed(self, screen: "weakref.ref[Screen[object]]", tries: int) -> None:
        """Free closed screens.

        Textual drops watchers of an app attribute only when the attribute changes, and cached drawings of a widget only
        after a thousand others.
        """
        StylesCache.get_inner_outer.cache_clear()
        for watchers in vars(self).get("__watchers", {}).values():
            watchers[:] = [(who, callback) for who, callback in watchers if who.is_running]
        free_what_was_closed()
        if screen() is not None and tries > 1:  # on a busy machine a task may still hold it
            call_later(self, SECONDS_BEFORE_FREEING, partial(self._free_closed, screen, tries - 1))

    async def action_quit(self) -> None:
        """Exit with code 0."""
        self.exit(0)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the commands of the command palette: those of Textual that we have no better way for, and ours."""
        yield from (one for one in super().get_system_commands(screen) if one.title not in LEFT_OUT)
        if isinstance(screen, Opening):
            yield from screen.commands()


def run_chat(
    options: EngineOptions,
    system: str | None = None,
    max_new_tokens: int | None = None,
    recorder: Recorder | None = None,
    store: ConversationStore | None = None,
    opened: SavedConversation | None = None,
    settings_file: SettingsFile | None = None,
    instructed: str | None = None,
    instead: EngineOptions | None = None,
) -> int:
    """Chat with a live engine; return the exit code. Without a store, nothing is saved.

    `opened` is a saved conversation to continue, and `instructed` replaces its system prompt from now on. `instead`
    names the model that answers if that of `options` cannot be loaded.
    """
    command = options.engine_command
    conversation = Conversation(system, max_new_tokens, options.named if command is None else "", store)
    engines = _engines_of(options, options.named)
    way_back = (
        WayBack(instead.named, _engines_of(options, instead.named), instead.settings.decoder) if instead else None
    )
    named = command is not None
    session = Session(engines, options.settings, conversation, recorder, way_back, named_by_engine=named)
    screen = ChatScreen(
        session,
        options.named,
        welcome(options.settings.decoder),
        store=store,
        history=PromptHistory() if store is not None else None,
        opened=opened,
        instructed=instructed,
        engines=partial(_engines_of, options) if command is None else None,
        command="" if command is None else command.text,
        settings_file=settings_file,
    )
    code = _run(LadechatApp(screen, session, settings_file))
    if store is not None:
        store.close()
    if not code and store is not None and store.latest:
        again = "ladechat --continue" + ("" if command is None else " with the same --engine")
        print(f"Kept. {again} goes on with this conversation.")
    return code


def _engines_of(options: EngineOptions, model: str) -> NewEngine:
    """Return a factory of a model's engines. The named files (pool, maps) belong to the model of `options` only."""
    if model != options.named:
        options = options.with_model(model)

    def new_engine(settings: Settings) -> EngineSource:
        return engine_of(options.with_settings(settings))

    return new_engine


def run_replay(recording: Recording) -> int:
    """Show a recording; return the exit code."""
    return _run(LadechatApp(ReplayScreen(recording), settings_file=SettingsFile()))


def run_race(race: Measuring | Comparison) -> int:
    """Measure decoders and show their race, or show answers of two recordings side by side; return the exit code."""
    return _run(LadechatApp(RaceScreen(race), settings_file=SettingsFile()))


def run_lessons(progress: Progress, file: ProgressFile | None, notice: str) -> int:
    """Teach, starting from the reader's progress; return the exit code. Without a file, progress is not saved."""
    session = lesson_session()
    return _run(LadechatApp(LearnScreen(session, progress, file, notice), session, SettingsFile()))


def _run(app: LadechatApp) -> int:
    collect_what_is_new()
    app.run()
    return app.return_code or int(app.failed)
