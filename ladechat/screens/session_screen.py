"""What the parts of the chat have in common: a session with an engine, a conversation that is shown, a prompt."""

from collections.abc import Iterable

from textual import on
from textual.containers import Vertical
from textual.notifications import SeverityLevel
from textual.widgets import Label, TextArea

from ladechat.protocol import DecoderInfo, Failed
from ladechat.screens.styled_once import StyledOnce
from ladechat.screens.view import ConversationView
from ladechat.session.engine_session import EngineSession
from ladechat.session.state import State
from ladechat.widgets.presenter import ENDED
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.prompt_size import PromptSize
from ladechat.widgets.waiting_questions import WaitingQuestions

EDITING = "Editing the last question; Esc keeps it and its answer."
STOP_FIRST = "Stop the answer first (Esc)."
START_AGAIN = "F5 starts it again"
OTHER_MODEL = "/model NAME takes another model"
OF_THE_MODEL = ("model_not_found", "no_safetensors", "unsupported_architecture")
"""Codes of failures that another start would meet again."""


class SessionScreen(StyledOnce[None]):
    """A screen of one session. Each of its subclasses adds the actions of one subject.

    Args:
        session: the engine's.
        welcome: the first notice.
    """

    def __init__(self, session: EngineSession, welcome: str = "") -> None:
        super().__init__()
        self._session = session
        self._way_on = START_AGAIN
        self._command = ""
        """What was typed behind the slash, while that command is run; "" for what keys and lists do."""
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
        """Those that the engine has announced."""
        return self.view.presenter.decoders.values()

    def _show_ended(self, why: Failed) -> None:
        """Say what can be done about an engine that has ended."""
        loading = self._session.state in (State.STARTING, State.LOADING, State.DOWNLOADING)
        both = f"{START_AGAIN}, {OTHER_MODEL}" if loading else START_AGAIN
        self._way_on = OTHER_MODEL if why.code in OF_THE_MODEL else both
        self.view.presenter.say(f"{ENDED} · {self._way_on}")

    def _refuse(self, why: str, command: str | None = None, severity: SeverityLevel = "warning") -> None:
        """Say why something is not done. What was typed for it is in the prompt again, to be corrected or sent later.

        Args:
            why: a sentence, with what to do.
            command: what was typed behind the slash, where it is refused after a while; by default what is run now.
            severity: of the notice.
        """
        if typed := self._command if command is None else command:
            self._prompt.offer_command(f"/{typed}")
        self.notify(why, severity=severity)

    def _refuse_without_engine(self) -> None:
        """Say why nothing is asked now."""
        self._refuse(f"The engine has ended. {self._way_on}.")

    def _offer(self, question: str, *, replacing: bool = False) -> None:
        """Put a question into the prompt, unless something is typed there: another one, or in the place of the last."""
        if self._prompt.is_blank:
            self._prompt.offer(question)
            self._editing.display = replacing

    def _leave_editing(self) -> None:
        """Edit the last question no longer: it stays as it was, and the prompt is empty again."""
        if self._editing.display:
            self._editing.display = False
            self._prompt.clear()

    @on(TextArea.Changed, "#prompt")
    def _show_size(self) -> None:
        self._prompt_size.show(self._prompt.document.text)
