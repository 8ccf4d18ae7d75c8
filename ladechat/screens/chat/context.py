"""What the controllers of the chat share: the session, its view, the prompt, and the way to refuse an action."""

from collections.abc import Callable

from textual.notifications import SeverityLevel
from textual.screen import Screen

from ladechat.protocol import Failed
from ladechat.screens.view import ConversationView
from ladechat.session.engine import State
from ladechat.session.session import Session
from ladechat.widgets.presenter import ENDED
from ladechat.widgets.prompt.prompt import Prompt

STOP_FIRST = "Stop the answer first (Esc)."
SECONDS_FOR_A_PATH = 15.0
START_AGAIN = "F5 starts it again"
OTHER_MODEL = "/model NAME takes another model"
OF_THE_MODEL = ("model_not_found", "no_safetensors", "unsupported_architecture")
"""The codes of failures that would occur again after a restart."""

Available = dict[str, Callable[[], bool]]
"""The actions that are not always available, each with a function that returns whether it is now."""


class ChatContext:
    """What the controllers of the chat act on. A controller has the actions of one subject: a method `action_…` for
    each, and `available` if some of them are not always available.

    Attributes:
        engine_command: the user's command that is the engine; "" for an engine of this machine.
        command: the text after the slash while that command runs; "" for actions of keys and lists.
    """

    def __init__(
        self,
        screen: Screen[None],
        session: Session,
        view: ConversationView,
        prompt: Prompt,
        engine_command: str = "",
    ) -> None:
        self.screen, self.session, self.view, self.prompt = screen, session, view, prompt
        self.engine_command = engine_command
        self.notify = screen.notify
        self.command = ""
        self._way_on = START_AGAIN

    @property
    def no_engine(self) -> str:
        """The reason why nothing can be asked once the engine has ended, and what to do."""
        return f"The engine has ended. {self._way_on}."

    def show_ended(self, why: Failed) -> None:
        """Show what can be done about an engine that has ended."""
        # The session reacts after the screen has shown an event: this is still the state before.
        loading = self.session.state in (State.STARTING, State.LOADING, State.DOWNLOADING)
        both = f"{START_AGAIN}, {OTHER_MODEL}" if loading else START_AGAIN
        self._way_on = OTHER_MODEL if why.code in OF_THE_MODEL else both
        if self.engine_command:
            self._way_on = START_AGAIN
        self.view.presenter.say(f"{ENDED} · {self._way_on}")

    def report(self, text: str) -> None:
        """Say what has ended in a line of the conversation, which stays; also in a message if that is out of view."""
        if self.view.presenter.answering or not (self.screen.is_current and self.view.transcript.follows_end):
            self.notify(text, timeout=SECONDS_FOR_A_PATH)
        self.view.presenter.note(text)

    def refuse(self, why: str, command: str | None = None, severity: SeverityLevel = "warning") -> None:
        """Report why an action is refused, and what to do. The command typed for it is put back into the prompt, to be
        corrected or sent later: the running one, or one that is refused later, as the text after its slash.
        """
        if typed := self.command if command is None else command:
            self.prompt.offer_command(f"/{typed}")
        self.notify(why, severity=severity)
