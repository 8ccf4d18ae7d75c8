"""What the parts of the chat have in common: a session with an engine, a conversation that is shown, a prompt."""

from collections.abc import Iterable

from textual import on
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import TextArea

from ladechat.protocol import DecoderInfo
from ladechat.screens.view import ConversationView
from ladechat.session.engine_session import EngineSession
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.prompt_size import PromptSize
from ladechat.widgets.waiting_questions import WaitingQuestions

STOP_FIRST = "Stop the answer first (Esc)."
ENGINE_ENDED = "The engine has ended. F5 starts it again."


class SessionScreen(Screen[None]):
    """A screen of one session. Each of its subclasses adds the actions of one subject.

    Args:
        session: the engine's.
        welcome: the first notice.
    """

    def __init__(self, session: EngineSession, welcome: str = "") -> None:
        super().__init__()
        self._session = session
        self._prompt = Prompt(id="prompt")
        self._waiting = WaitingQuestions()
        self._prompt_size = PromptSize()
        asking = Vertical(self._waiting, self._prompt_size, self._prompt.commands, self._prompt, id="asking")
        self.view = ConversationView(asking, welcome)

    @property
    def decoders(self) -> Iterable[DecoderInfo]:
        """Those that the engine has announced."""
        return self.view.presenter.decoders.values()

    @on(TextArea.Changed, "#prompt")
    def _show_size(self) -> None:
        self._prompt_size.show(self._prompt.document.text)
