"""The Textual app: its screens, what all of them can do, and how it is started."""

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

# Textual reads it when it is imported. At its 60 frames a second a key in the prompt may wait 33 ms, for two of them;
# at 240 half of all letters are there after 8 ms. What an engine sends is drawn `FRAMES_PER_SECOND` times a second.
os.environ.setdefault("TEXTUAL_FPS", "240")

from textual import on
from textual._styles_cache import StylesCache
from textual.app import SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widgets import Input, LoadingIndicator, TextArea

from ladechat.clipboard import keep
from ladechat.engine_options import EngineOptions
from ladechat.garbage import collect_what_is_new, free_what_was_closed
from ladechat.keys import APP_KEY_GROUPS
from ladechat.lessons.progress import Progress, ProgressFile
from ladechat.preferences import SettingsFile
from ladechat.protocol import Settings
from ladechat.screens.app_with_look import AppWithLook
from ladechat.screens.chat import ChatScreen
from ladechat.screens.command_search import CommandSearch
from ladechat.screens.explain import TOO_FAST, ExplainScreen
from ladechat.screens.help import HelpScreen
from ladechat.screens.learn import LearnScreen
from ladechat.screens.learn_from_chat import lesson_session
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay import ReplayScreen
from ladechat.screens.view import ConversationView, welcome
from ladechat.session.comparing import Comparison
from ladechat.session.conversation import Conversation
from ladechat.session.conversation_file import Kept
from ladechat.session.conversation_store import ConversationStore
from ladechat.session.engine_run import EngineRun
from ladechat.session.engine_session import EngineSession
from ladechat.session.engines import WayBack
from ladechat.session.live import LiveEngine
from ladechat.session.measuring import Measuring
from ladechat.session.model_trial import NewEngine
from ladechat.session.prompt_history import PromptHistory
from ladechat.session.recording import Recorder
from ladechat.session.replay import Recording
from ladechat.session.source import EngineSource
from ladechat.widgets.lasting import let_lasting_work_hold_the_app_alone
from ladechat.widgets.later import call_later
from ladechat.widgets.too_small import TooSmall

Opening = ChatScreen | ReplayScreen | RaceScreen | LearnScreen

SECONDS_BEFORE_FREEING = 1.0
"""After a screen was closed: the one below is drawn first, and timers that were called off are gone."""


class LadechatApp(AppWithLook, inherit_bindings=False):
    """One screen at a time, in one look.

    Args:
        opening: the first screen.
        session: the engine's, if there is one; it ends with the app.
        settings_file: theme and look as they were, and where changes of them are kept; None keeps none.
    """

    CSS_PATH = "app.tcss"
    TITLE = "ladechat"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {CommandSearch}  # noqa: RUF012 - as Textual declares it

    def __init__(
        self,
        opening: Opening,
        session: EngineSession | None = None,
        settings_file: SettingsFile | None = None,
    ) -> None:
        super().__init__(settings_file)
        self._opening = opening
        self._session = session

    def get_default_screen(self) -> Screen[None]:
        """The opening screen, laid out for its size from the first frame on; Textual would do so after it."""
        self.fit(self._opening, self.size)
        return self._opening

    def on_mount(self) -> None:
        let_lasting_work_hold_the_app_alone(EngineRun.run)
        if self._settings_file is not None:
            self.begin_with_settings()
            if not self._settings_file.preferences.panels and not isinstance(self._opening, RaceScreen):
                self._view.toggle_panels()
        self.follow_theme()
        self.screen_change_signal.subscribe(self, lambda _: self.clear_notifications(), immediate=True)

    async def on_unmount(self) -> None:
        """However the app ends, the engine ends first, and then the recording."""
        if self._session is not None:
            await self._session.close()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """No cursor blinks: where nothing happens, nothing is drawn."""
        if isinstance(event.widget, Input | TextArea):
            event.widget.cursor_blink = False

    @on(CommandPalette.Opened)
    def _rest_under_palette(self) -> None:
        """Stop the drawing of what would show, 16 times a second, that commands are looked for: all are at hand."""
        for indicator in self.screen.query(LoadingIndicator):
            indicator.auto_refresh = None
        self.screen.mount(TooSmall())

    # --- keys that all screens have -----------------------------------------------------------------------------------

    @property
    def _conversing(self) -> ChatScreen | ReplayScreen:
        """The screen of a conversation, the uppermost of two. A race and lessons have none, and no key for it."""
        screens = (self._opening, *self.screen_stack)
        return next(one for one in reversed(screens) if isinstance(one, ChatScreen | ReplayScreen))

    @property
    def _view(self) -> ConversationView:
        return self._conversing.view

    def action_page_up(self) -> None:
        """Earlier in the conversation."""
        self._view.transcript.action_page_up()

    def action_page_down(self) -> None:
        """Later in the conversation."""
        self._view.transcript.action_page_down()

    def action_toggle_panels(self) -> None:
        """Show or hide the panels."""
        self._view.toggle_panels()
        self.keep_settings(panels=self._view.side.display)

    def action_switch_format(self) -> None:
        """Answers as formatted Markdown, or as they were written, in the colours of steps."""
        self._view.transcript.formatted = not self._view.transcript.formatted

    def action_fold(self) -> None:
        """Open long questions, or fold them."""
        self._view.transcript.action_fold()

    def action_help(self) -> None:
        """Explain what is on the screen."""
        if isinstance(self.screen, Opening):
            subjects = APP_KEY_GROUPS if isinstance(self.screen, ChatScreen) else ()
            news = ("What was said just now", [(one.severity, one.text) for one in self.said_at_key])
            first = [section for section in (self.left_out, news) if section[1]]
            self.push_screen(HelpScreen(self.screen, self.screen.decoders, subjects, first))

    def action_explain(self) -> None:
        """Explain each panel, with its numbers."""
        explanations = self._view.side.explanations()
        if explanations and isinstance(self.screen, ChatScreen):
            explanations.append(TOO_FAST)
        self.push_screen(ExplainScreen(explanations))

    def action_switch_view(self) -> None:
        """What of a step is shown beside the conversation."""
        self._view.side.switch_view()

    def action_copy_answer(self) -> None:
        """Copy the last answer as the model wrote it."""
        if answer := next(self._view.transcript.answers(), ""):
            self.copy_to_clipboard(answer)

    def pop_screen(self) -> AwaitComplete:
        """Close the uppermost screen, and free it when the one below has been drawn."""
        closing = super().pop_screen()
        self._free_when_closed(closing)
        return closing

    def _free_when_closed(self, closing: AwaitComplete) -> None:
        then = self._free_closed if closing.is_done else partial(self._free_when_closed, closing)
        call_later(self, SECONDS_BEFORE_FREEING, then)

    def _free_closed(self) -> None:
        """Free closed screens.

        Textual lets go of those that watched an attribute of the app only when that changes, and of what a widget drew
        last only when a thousand others were drawn.
        """
        StylesCache.get_inner_outer.cache_clear()
        for watchers in vars(self).get("__watchers", {}).values():
            watchers[:] = [(who, callback) for who, callback in watchers if who.is_running]
        free_what_was_closed()

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(0)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette lists."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, Opening):
            yield from screen.commands()

    # --- for all screens ----------------------------------------------------------------------------------------------

    def copy_to_clipboard(self, text: str, said: str = "Sent to the clipboard") -> None:
        """Put a text on the clipboard, as far as the terminal takes it (OSC 52), and into a file; and say so."""
        super().copy_to_clipboard(text)
        path = keep(text)
        self.notify(f"{said}; {f'also in {path}' if path else 'no file could be written'}.")


def run_chat(
    options: EngineOptions,
    system: str | None = None,
    max_new_tokens: int | None = None,
    recorder: Recorder | None = None,
    store: ConversationStore | None = None,
    opened: Kept | None = None,
    settings_file: SettingsFile | None = None,
    instructed: str | None = None,
    instead: EngineOptions | None = None,
) -> int:
    """Chat with a live engine; the exit code.

    Without a store, nothing is kept. With one, `opened` is the conversation to go on with, and with `instructed` it has
    that system prompt from now on. `instead` has the model that answers where that of `options` cannot be loaded.
    """
    conversation = Conversation(system, max_new_tokens, options.model, store)
    engines = _engines_of(options, options.model)
    way_back = (
        WayBack(instead.model, _engines_of(options, instead.model), instead.settings.decoder) if instead else None
    )
    session = EngineSession(engines, options.settings, conversation, recorder, way_back)
    screen = ChatScreen(
        session,
        options.model,
        welcome(options.model),
        store=store,
        history=PromptHistory() if store is not None else None,
        opened=opened,
        instructed=instructed,
        engines=partial(_engines_of, options),
        settings_file=settings_file,
    )
    code = _run(LadechatApp(screen, session, settings_file))
    if store is not None:
        store.close()
    if not code and store is not None and store.latest:
        print("Kept. ladechat --continue goes on with this conversation.")
    return code


def _engines_of(options: EngineOptions, model: str) -> NewEngine:
    """What makes the engines of a model. The files that were named are for the model that was named with them."""
    if model != options.model:
        options = replace(options, model=model, pool=None, maps=None)

    def new_engine(settings: Settings) -> EngineSource:
        return LiveEngine(replace(options, settings=settings).command())

    return new_engine


def run_replay(recording: Recording) -> int:
    """Show a recording; the exit code."""
    return _run(LadechatApp(ReplayScreen(recording), settings_file=SettingsFile()))


def run_race(measuring: Measuring) -> int:
    """Measure decoders and show their race; the exit code."""
    return _run(LadechatApp(RaceScreen(measuring), settings_file=SettingsFile()))


def run_side_by_side(comparison: Comparison) -> int:
    """Show answers of two recordings; the exit code."""
    return _run(LadechatApp(RaceScreen(comparison), settings_file=SettingsFile()))


def run_lessons(progress: Progress, file: ProgressFile | None, notice: str) -> int:
    """Teach, from where the reader has come to; the exit code. Without a file, nothing is kept."""
    session = lesson_session()
    return _run(LadechatApp(LearnScreen(session, progress, file, notice), session))


def _run(app: LadechatApp) -> int:
    collect_what_is_new()
    app.run()
    return app.return_code or int(app.failed)
