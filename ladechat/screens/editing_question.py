"""The last question, edited in the prompt. It and its answer stay until the new one is sent."""

from textual import events, on

from ladechat.protocol import Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted
from ladechat.screens.pace_keys import PaceKeys
from ladechat.screens.session_screen import STOP_FIRST
from ladechat.session.conversation import NOTHING_ANSWERED
from ladechat.widgets.prompt import Prompt

ENDS_EDITING = (Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted)
"""Events after which the last question is another one, or its answer is."""


class EditingQuestion(PaceKeys):
    """Offers the last question in the prompt, and leaves the conversation as it is unless that is sent."""

    def action_edit_question(self) -> None:
        """Put the last question into the prompt."""
        question = self._session.conversation.last_question
        if self._prompt.text:
            self._refuse("Send or clear what is in the prompt first.")
        elif self._session.asking:
            self._refuse(STOP_FIRST)
        elif question is None:
            self._refuse(NOTHING_ANSWERED)
        else:
            self._offer(question, replacing=True)
            self._prompt.focus()

    def action_leave_editing(self) -> None:
        """Keep the last question and its answer."""
        self._leave_editing()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Editing can be left while it goes on."""
        if action == "leave_editing":
            return self._editing.display
        return super().check_action(action, parameters)

    @on(Prompt.Commanded)
    def _leave_for_command(self) -> None:
        """The question has given way to a command."""
        self._editing.display = False

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """A prompt that was cleared and left holds no question; another window of the desktop is no reason."""
        if event.widget is self._prompt and self._prompt.is_blank and self.app.app_focus:
            self._editing.display = False
