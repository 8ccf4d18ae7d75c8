"""The base of the parts of the chat: a session with an engine, the view of its conversation, and a prompt."""

from collections.abc import Iterable

from textual import on
from textual.containers import Vertical
from textual.notifications import SeverityLevel
from textual.widgets import Label, TextArea

from ladechat.protocol import DecoderInfo, Failed
from ladechat.screens.styled_once import StyledOnce
from ladechat.screens.view import ConversationView
from ladechat.session.engine_session import EngineSession
from ladechat.session.source import State
from ladechat.widgets.presenter import ENDED
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.prompt.prompt_size import PromptSize
from ladechat.widgets.prompt.waiting_questions import WaitingQuestions

EDITING = "Editing the last question; Esc keeps it and its answer."
STOP_FIRST = "Stop the answer first (Esc)."
START_AGAIN = "F5 starts it again"
OTHER_MODEL = "/model NAME takes another model"
OF_THE_MODEL = ("model_not_found", "no_safetensors", "unsupported_architecture")
"""The codes of failures that would occur again after a restart."""


class SessionScreen(StyledOnce[None]):
    """A screen of one session. Each subclass adds the actions of one subject.

    Args:
        session: the session with the engine.
        welcome: the first notice.
    """

    def __init__(self, session: EngineSession, welcome: str = "") -> None:
        super().__init__()
        self._session = session
        self._way_on = START_AGAIN
        self._command = ""
        """The text after the slash while that command runs; "" for actions of keys and lists."""
        self._prompt = Prompt(id="prompt")
        self._waiting = WaitingQuestions()
        self._prompt_size = PromptSize()
        self._editing = Label(EDITING, id="editing")
        self._editing.display = False
        asking = Vertical(
            self._waiting, self._editing, self._prompt_size, self._prompt.commands, self._prompt, id="asking"
        )
        self.view = ConversationView(asking, welcome)

    @property
    def decoders(self) -> Iterable[DecoderInfo]:
        """The decoders that the engine has announced."""
        return self.view.presenter.decoders.values()

    def _show_ended(self, why: Failed) -> None:
        """Show what can be done about an engine that has ended."""
        loading = self._session.state in (State.STARTING, State.LOADING, State.DOWNLOADING)
        both = f"{START_AGAIN}, {OTHER_MODEL}" if loading else START_AGAIN
        self._way_on = OTHER_MODEL if why.code in OF_THE_MODEL else both
        self.view.presenter.say(f"{ENDED} · {self._way_on}")

    def _refuse(self, why: str, command: str | None = None, severity: SeverityLevel = "warning") -> None:
        """Report why an action is refused. The command typed for it is put back into the prompt, to be corrected or
        sent later.

        Args:
            why: a sentence, with what to do.
            command: the text after the slash, if it is refused later; by default that of the running command.
            severity: the severity of the message.
        """
        if typed := self._command if command is None else command:
            self._prompt.offer_command(f"/{typed}")
        self.notify(why, severity=severity)

    def _refuse_without_engine(self) -> None:
        """Report that the engine has ended, so that no question is sent."""
        self._refuse(f"The engine has ended. {self._way_on}.")

    def _offer(self, question: str, *, replacing: bool = False) -> None:
        """Put a question into the prompt if it is empty: as a new question, or in place of the last one."""
        if self._prompt.is_blank:
            self._prompt.offer(question)
            self._editing.display = replacing

    def _leave_editing(self) -> None:
        """Cancel editing the last question: it stays as it was, and the prompt is cleared."""
        if self._editing.display:
            self._editing.display = False
            self._prompt.clear()

    @on(TextArea.Changed, "#prompt")
    def _show_size(self) -> None:
        self._prompt_size.show(self._prompt.document.text)
