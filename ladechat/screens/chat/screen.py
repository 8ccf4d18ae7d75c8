"""The chat: questions to an engine, its answers, and the keys for both."""

import gc
import math
from collections.abc import Iterable, Sequence
from functools import partial
from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.widgets import TextArea

from ladechat.commands import COMMANDS
from ladechat.keys import APP_KEYS
from ladechat.preferences import SettingsFile
from ladechat.protocol import MOST_TEXT, Event, Failed, Ready
from ladechat.screens.chat.all_settings import AllSettings
from ladechat.screens.chat.editing_question import ENDS_EDITING, EditingQuestion
from ladechat.screens.chat.kept_conversations import KeptConversations
from ladechat.screens.chat.learn_from_chat import LearnFromChat
from ladechat.screens.chat.looking_back import LookingBack
from ladechat.screens.chat.model_choice import Engines
from ladechat.screens.chat.questions_in_line import QuestionsInLine
from ladechat.screens.chat.recordings import Recordings
from ladechat.screens.chat.session_screen import STOP_FIRST
from ladechat.screens.chat.slash_commands import SlashCommands
from ladechat.screens.chat.typing_anywhere import TypingAnywhere
from ladechat.screens.engine_silence import EngineSilence
from ladechat.screens.race import RaceScreen
from ladechat.screens.view import commands
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine_session import EngineSession
from ladechat.session.source import State
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.formatting import name_of
from ladechat.widgets.later import Frames, call_later
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.presenter import STARTING
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.too_small import TooSmall

QUIT_SECONDS = 2.0
RACE_OPTIONS = (
    "/race takes a question and no options. For those, type in the shell: "
    'ladechat race --decoders lookahead,medusa "What is a token?"'
)


class ChatScreen(
    LookingBack,
    QuestionsInLine,
    EditingQuestion,
    KeptConversations,
    Recordings,
    LearnFromChat,
    AllSettings,
    SlashCommands,
    TypingAnywhere,
):
    """The chat with a session: the user's input, and the session's events.

    Args:
        session: the session with the engine.
        model: the model's name in the names of recordings.
        welcome: the first notice.
        store: saves the conversations; None: nothing is saved.
        history: the questions of earlier sessions, for the prompt.
        opened: the conversation to continue.
        instructed: its system prompt from now on; None: it stays as it is.
        engines: creates the engines of another model; None: models cannot be changed.
        settings_file: saves the settings; None: nothing is saved.
    """

    AUTO_FOCUS = "#prompt"
    BINDINGS: ClassVar[list[BindingType]] = list(APP_KEYS)

    def __init__(
        self,
        session: EngineSession,
        model: str,
        welcome: str = "",
        *,
        store: ConversationStore | None = None,
        history: PromptHistory | None = None,
        opened: SavedConversation | None = None,
        instructed: str | None = None,
        engines: Engines | None = None,
        settings_file: SettingsFile | None = None,
    ) -> None:
        super().__init__(
            session, "" if opened else welcome, store=store, model=model, engines=engines, settings_file=settings_file
        )
        self._prompt.shown_at = math.inf
        self._history = history
        self._opened = opened
        self._instructed = instructed
        self._quit_next = False
        self._frames = Frames(self, self._frame)
        self.silence = EngineSilence(self, session, self.view.presenter.warn)

    def compose(self) -> ComposeResult:
        yield self.view
        yield KeyFooter()
        yield TooSmall()

    def on_mount(self) -> None:
        self._session.show, self._session.give_back = self.show, self.give_back
        self._session.model_taken, self._session.model_refused = self.model_taken, self.model_refused
        self._session.recorder.failed = self.recording_failed
        self._session.changed = self._frames.due
        self.view.presenter.begin(self._session.requested)
        self._show_recording()
        if self._history is not None:
            questions, problem = self._history.read()
            self._prompt.remember(questions)
            if problem:
                self.notify(problem, severity="warning", timeout=10)
        if self._open(self._opened) and self._instructed is not None:
            self._session.instruct(self._instructed)
        self._frames.due()
        self.call_after_refresh(self._after_first_frame)

    def _after_first_frame(self) -> None:
        """Start the engine once the screen is shown."""
        gc.enable()
        self._prompt.shown_at = monotonic()
        self._session.start()

    def _frame(self) -> None:
        if self.is_running:  # the widgets are removed before the timer is
            self._session.frame()
            self._show_pace()
            self._show_search()
            self._show_copy()
            self.silence.look_later()

    @on(TextArea.Changed, "#prompt")
    def _show_keys(self) -> None:
        """Update the keys in the footer, which depend on whether the prompt is empty; the typed text is drawn first."""
        self._frames.go_on()

    def on_resize(self) -> None:
        """Update the footer: its width has changed, and with it the keys that fit."""
        self._frames.due()

    # --- called by the session ----------------------------------------------------------------------------------------

    def show(self, events: Sequence[Event]) -> None:
        """Draw events. The transcript draws all steps of a frame at once, panels repaint at their own pace."""
        if self.is_running:
            self.view.presenter.show(events)
            for event in events:
                if isinstance(event, Ready):
                    self._note_loaded(True)
                    self._learn_limits(event)
                    self._say_which_model_answers()
                elif isinstance(event, Failed) and event.fatal:
                    self._note_loaded(False)
                    self._show_ended(event)
                elif isinstance(event, ENDS_EDITING):
                    self._leave_editing()

    def give_back(self, question: str, replacing: bool) -> None:
        """Offer a question that got no answer in the prompt, to be sent again."""
        if self.is_running:
            self._offer(question, replacing=replacing)

    # --- questions ----------------------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    def _take_question(self, event: Prompt.Sent) -> None:
        if self._history is not None:
            self._history.add(event.text)
        if self._session.state is State.ENDED:
            self._prompt.offer(event.text)
            self._refuse_without_engine()
            return
        if len(event.text) > MOST_TEXT:
            self._prompt.offer(event.text)
            self.notify(f"More than {MOST_TEXT:,} characters are not sent; ask a shorter question.", severity="warning")
            return
        self.view.transcript.anchor()
        if self._session.asking:
            self._session.ask_later(event.text)
        else:
            replacing, self._editing.display = self._editing.display, False
            self._session.ask(event.text, replacing=replacing)

    def action_stop(self) -> None:
        """Stop the answer, a download, or a search: for another model, or for layers to skip."""
        self._session.stop()

    def action_interrupt(self) -> None:
        """Copy the selection; without one, stop the answer; without an answer, quit at the second press."""
        selected = self._prompt.selected_text or self.get_selected_text()
        if selected:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
            self._prompt.move_cursor(self._prompt.cursor_location)
        elif self._session.asking and not self._quit_next:
            self.action_stop()
            self._arm_quit("Stopping. Ctrl+C again quits.")
        elif self._quit_next:
            self.app.exit(0)
        else:
            self._arm_quit("Ctrl+C again quits.")

    def _arm_quit(self, text: str) -> None:
        self._quit_next = True
        self.app.clear_notifications()
        self.notify(text, timeout=QUIT_SECONDS)
        call_later(self, QUIT_SECONDS, self._disarm_quit)

    def _disarm_quit(self) -> None:
        self._quit_next = False

    def action_follow(self) -> None:
        """Scroll to the end of the conversation, and follow it as it grows."""
        self.view.transcript.anchor()

    def action_race(self, question: str = "") -> None:
        """Race decoders on a question: the given one, the typed one, or else the last one."""
        text = question or self._prompt.question
        if question.startswith("--"):
            why = RACE_OPTIONS
        elif (busy := self._why_no_race()) is not None:
            why = busy
        elif len(text) > MOST_TEXT:
            why = f"More than {MOST_TEXT:,} characters are not sent; ask a shorter question."
        elif (measuring := self._session.race(text)) is None:
            why = "Type a question first: the race is about its answer."
        else:
            self._editing.display = False  # the typed text stays in the prompt, as a new question
            self.app.push_screen(RaceScreen(measuring))
            return
        self._refuse(why)

    def _why_no_race(self) -> str | None:
        """Return why no race can start now, in a sentence; None if one can."""
        session = self._session
        if session.state is State.ENDED:
            return f"The engine has ended. {self._way_on}."
        if session.asking or session.waiting:
            return STOP_FIRST
        if session.racing:
            return "The race before is not at its end yet: its last pass is under way."
        if session.looking_for:
            return f"{name_of(session.looking_for)} is being looked for: race when it answers, or stop that (Esc)."
        return None

    # --- settings -----------------------------------------------------------------------------------------------------

    @on(LensPanel.Seen)
    def _lens_seen(self, event: LensPanel.Seen) -> None:
        self._session.watch(event.shown)

    def commands(self) -> Iterable[SystemCommand]:
        """Yield the commands of the palette: the actions of all keys, other commands, and every decoder."""
        yield from commands(self.app, self, APP_KEYS)
        yield self.learn_command()
        for one in COMMANDS:
            if one.title:
                yield SystemCommand(one.title, one.help, partial(self.app.run_action, one.action, self))
        yield from self.decoder_commands()

    # --- the engine ---------------------------------------------------------------------------------------------------

    def action_restart_engine(self) -> None:
        """End the engine and start a new one. The conversation stays."""
        if self._session.restart():
            self.view.presenter.say(STARTING)
