"""The chat: questions to an engine, its answers, and the keys for both."""

import gc
import math
from collections.abc import Iterable, Sequence
from functools import partial
from time import monotonic
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult, SystemCommand
from textual.binding import ActiveBinding, BindingType
from textual.containers import Vertical
from textual.widgets import Label, TextArea

from ladechat.catalog import first_questions
from ladechat.commands import COMMANDS
from ladechat.keys import APP_KEYS
from ladechat.own_keys import with_own_keys
from ladechat.preferences import SettingsFile
from ladechat.protocol import DecoderInfo, Event, Failed, Ready, Watch
from ladechat.screens.chat.active_keys import ActiveKeys
from ladechat.screens.chat.context import ChatContext
from ladechat.screens.chat.looking_back import LookingBack
from ladechat.screens.chat.model_choice import Engines, ModelChoice
from ladechat.screens.chat.other_screens import OtherScreens
from ladechat.screens.chat.pace import PaceController
from ladechat.screens.chat.questions import ENDS_EDITING, Questions
from ladechat.screens.chat.recordings import Recordings
from ladechat.screens.chat.saved_conversations import SavedConversations
from ladechat.screens.chat.settings import ChatSettings
from ladechat.screens.chat.slash_commands import SlashCommands
from ladechat.screens.chat.typed_question import TypedQuestion
from ladechat.screens.engine_silence import EngineSilence
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.screens.view import ConversationView, commands
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.session import Session
from ladechat.widgets.bars.find_bar import FindBar
from ladechat.widgets.bars.in_effect import InEffect
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.formatting import describe_waiting
from ladechat.widgets.inputs import forward
from ladechat.widgets.later import Frames, call_later
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.presenter import STARTING
from ladechat.widgets.prompt.above_prompt import TypedSize, WaitingQuestions
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.steps.answer_steps import StepPointedAt
from ladechat.widgets.transcript.transcript import NEW_BELOW, NO_TOKENS, QuestionPointedAt, Transcript

QUIT_SECONDS = 2.0
LEAST_PROMPT_ROWS = 3
"""The rows to which the prompt may grow however low the terminal is."""


class ChatScreen(StyledOnce[None]):
    """The chat with a session. It has controllers, each with the actions of one subject, and passes on to them what the
    widgets and the session report.

    Args:
        session: the session with the engine.
        model: the first model, by the name that the user gave.
        welcome: the first notice.
        store: saves the conversations; None: nothing is saved.
        history: the questions of earlier sessions, for the prompt.
        opened: the conversation to continue.
        instructed: its system prompt from now on; None: it stays as it is.
        engines: creates the engines of another model; None: models cannot be changed.
        command: the user's command that is the engine; "" for an engine of this machine.
        settings_file: saves the settings; None: nothing is saved.
    """

    AUTO_FOCUS = "#prompt"
    BINDINGS: ClassVar[list[BindingType]] = list(APP_KEYS)

    def __init__(
        self,
        session: Session,
        model: str,
        welcome: str = "",
        *,
        store: ConversationStore | None = None,
        history: PromptHistory | None = None,
        opened: SavedConversation | None = None,
        instructed: str | None = None,
        engines: Engines | None = None,
        command: str = "",
        settings_file: SettingsFile | None = None,
    ) -> None:
        super().__init__()
        self._session = session
        self._opened = opened
        self._instructed = instructed
        self._quit_next = False
        self._frames = Frames(self, self._frame)
        self._prompt = prompt = Prompt(id="prompt")
        prompt.shown_at = math.inf
        prompt.offered = first_questions(model) if welcome and not opened else ()
        queue, where, size = WaitingQuestions(), Label(id="editing"), TypedSize()
        self._in_effect = InEffect(id="in-effect")
        asking = Vertical(queue, where, size, prompt.commands, prompt, self._in_effect, id="asking")
        self.view = ConversationView(asking, "" if opened else welcome, prompt.offered)
        self.view.presenter.may_continue = True
        self._finding = FindBar(self.view.transcript, prompt)
        self.silence = EngineSilence(self, session, self.view.presenter.warn)

        self._chat = chat = ChatContext(self, session, self.view, prompt, command)
        self._keys = ActiveKeys(chat)
        self._looking_back = LookingBack(chat, self._keys)
        pace = PaceController(chat, self._looking_back)
        self._typed_question = TypedQuestion(chat, size)
        self._questions = Questions(chat, self._typed_question, queue, where, history)
        self._models = ModelChoice(chat, self._questions, model, engines, store)
        self.saved = SavedConversations(chat, store, self._models)
        self._recordings = Recordings(chat)
        self.settings = ChatSettings(chat, self._models, settings_file)
        self._commands = SlashCommands(chat, self.settings)
        self._others = OtherScreens(chat, self._questions)
        self._available = {**pace.available, **self._looking_back.available, **self._questions.available}
        self._available |= self._typed_question.available
        for controller in (
            pace,
            self._looking_back,
            self._typed_question,
            self._questions,
            self._models,
            self.saved,
            self._recordings,
            self.settings,
            self._others,
        ):
            for name in dir(controller):
                if name.startswith("action_"):
                    setattr(self, name, getattr(controller, name))  # Textual looks for it here

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: the controller that has it decides."""
        return action not in self._available or self._available[action]()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The active keys, with what the footer shows of them."""
        return self._keys.in_footer(super().active_bindings)

    @property
    def decoders(self) -> Iterable[DecoderInfo]:
        return self.view.presenter.now.decoders.values()

    @property
    def unit(self) -> str:
        """The word for a step: pass, or chunk for a server that does not report its passes."""
        return self.view.presenter.unit

    def commands(self) -> Iterable[SystemCommand]:
        """Yield the commands of the palette: the actions of all keys, other commands, and every decoder."""
        yield from commands(self, APP_KEYS, self.unit)
        yield self._others.learn_command()
        for one in COMMANDS:
            if one.title:
                run = partial(self.app.run_action, one.action, self)
                yield SystemCommand(one.title, f"/{one.name} · {one.help}", run)
        yield from self.settings.decoder_commands()

    # --- showing ------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self.view
        yield from bottom(self._finding, messages=False)

    def on_mount(self) -> None:
        session, models = self._session, self._models
        session.show, session.give_back, session.recorder.failed = self.show, self.give_back, self._recordings.failed
        session.model_taken, session.model_refused = models.model_taken, models.model_refused
        session.changed = self._frames.due
        session.watch(Watch(rivals=True))  # any token may be pointed at
        self.view.presenter.begin(None if self._chat.engine_command else self._session.requested)
        self.view.transcript.more_below = with_own_keys(NEW_BELOW, self.app, "follow")
        self._recordings.show_recording()
        self._questions.remember()
        if self.saved.open(self._opened) and self._instructed is not None:
            self._session.instruct(self._instructed)
        self.watch(self._prompt, "show_vertical_scrollbar", self._typed_question.show)
        self.watch(self.view.transcript, "formatted", lambda: self._frames.due())
        self._frames.due()
        self.call_after_refresh(self._after_first_frame)
        self.saved.report_failures()

    def _after_first_frame(self) -> None:
        """Start the engine once the screen is shown."""
        gc.enable()
        self._prompt.shown_at = monotonic()
        self._session.start()

    async def on_unmount(self) -> None:
        """Save how the conversation is left, and cancel an export, when the app ends."""
        self.saved.note_view()
        self._questions.save_draft()
        await self._recordings.end()

    def _frame(self) -> None:
        session = self._session
        if self.is_running:  # the widgets are removed before the timer is
            session.frame()
            waiting = describe_waiting(len(session.waiting), session.continuing_later)
            self.view.show_pace(session.pace.rate, session.pace.paused, waiting)
            self._keys.show()
            self._questions.show()
            conversation, formatted = session.conversation, self.view.transcript.formatted
            preset, limit = self.settings.preset, conversation.max_new_tokens
            self._in_effect.show(preset, conversation.system, limit, self.settings.thinking, formatted=formatted)
            self.view.status.looking_for = session.looking_for
            self.saved.show_title()
            self.saved.show_copy()
            self.silence.look_later()

    def on_resize(self) -> None:
        """Update the footer: its width has changed, and with it the keys that fit. The prompt grows to a third."""
        self._prompt.styles.max_height = max(self.size.height // 3, LEAST_PROMPT_ROWS)
        self._prompt.call_after_refresh(self._prompt.scroll_cursor_visible)
        self._frames.due()

    # --- called by the session ----------------------------------------------------------------------------------------

    def show(self, events: Sequence[Event]) -> None:
        """Draw events. The transcript draws all steps of a frame at once, panels repaint at their own pace."""
        if self.is_running:
            self.view.presenter.show(events)
            for event in events:
                self._typed_question.note(event)
                if isinstance(event, Ready):
                    self._models.note_loaded(True)
                    self.settings.loaded(event)
                    self.saved.say_which_model_answers()
                elif isinstance(event, Failed) and event.fatal:
                    self._models.note_loaded(False)
                    self._chat.show_ended(event)
                elif isinstance(event, ENDS_EDITING):
                    self._questions.action_leave_editing()
                    self._prompt.offered = ()

    def give_back(self, question: str, place: int | None) -> None:
        """Offer a question that got no answer in the prompt, to be sent again."""
        if self.is_running:
            self._questions.offer(question, place)

    # --- the prompt ---------------------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    def _send(self, event: Prompt.Sent) -> None:
        self._questions.send(event.text)
        self._looking_back.action_leave_steps()

    @on(Transcript.Picked)
    def _picked(self, event: Transcript.Picked) -> None:
        self._questions.send(event.text)
        self.set_focus(self._prompt)

    @on(Prompt.Commanded)
    async def _run_command(self, event: Prompt.Commanded) -> None:
        self._questions.end_editing()
        await self._commands.run(event.text)

    @on(TextArea.Changed, "#prompt")
    def _typed(self) -> None:
        """Update the keys in the footer, which depend on whether the prompt is empty; the typed text is drawn first."""
        self._frames.go_on()
        self._prompt.lent = frozenset()
        self._typed_question.show()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """End editing when the prompt is empty and loses the focus, but not to another window of the desktop."""
        if event.widget is self._prompt and self._prompt.is_blank and self.app.app_focus:
            self._questions.end_editing()

    def on_key(self, event: events.Key) -> None:
        """Type a key that the focused widget does not use into the prompt, unless it is a key of the screen now.

        A key pressed before the prompt got the focus goes there too, so that Enter does not overtake a letter.
        """
        prompt = self._prompt
        typed = event.is_printable and not prompt.passes_on(event.key)
        if event not in prompt.seen and (typed or self.focused is prompt):
            self.set_focus(prompt)
            forward(event, prompt)

    def on_paste(self, event: events.Paste) -> None:
        """Insert text that was pasted elsewhere; the prompt stops the events of text pasted into it."""
        self.set_focus(self._prompt)
        forward(event, self._prompt)

    # --- other widgets ------------------------------------------------------------------------------------------------

    @on(StepPointedAt)
    def _step_pointed_at(self, event: StepPointedAt) -> None:
        self._looking_back.point_at(event)

    @on(Transcript.FormattedClicked)
    def _formatted_clicked(self) -> None:
        self._chat.notify(NO_TOKENS)

    @on(QuestionPointedAt)
    def _question_pointed_at(self, event: QuestionPointedAt) -> None:
        self._questions.point_at(event)

    @on(SeekBar.Sought)
    def _place_sought(self, event: SeekBar.Sought) -> None:
        self._looking_back.seek(event.fraction)

    @on(Slider.Changed)
    def _slider_moved(self, event: Slider.Changed) -> None:
        self.settings.move(event)

    @on(LensPanel.Seen)
    def _lens_seen(self, event: LensPanel.Seen) -> None:
        self._session.watch(Watch(lens=event.shown, rivals=True))

    # --- actions of the screen itself ---------------------------------------------------------------------------------

    def action_follow(self) -> None:
        """Scroll to the end of the conversation, and follow it as it grows."""
        self.view.transcript.anchor()

    def action_find(self) -> None:
        self._finding.open()

    def action_restart_engine(self) -> None:
        """End the engine and start a new one. The conversation stays."""
        if self._session.restart():
            self.view.presenter.say(STARTING)

    def action_interrupt(self) -> None:
        """Copy the selection; without one, stop the answer; without an answer, quit at the second press."""
        selected = self._prompt.selected_text or self.get_selected_text()
        if selected:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
            self._prompt.move_cursor(self._prompt.cursor_location)
        elif self._session.asking and not self._quit_next:
            self._session.stop()
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
