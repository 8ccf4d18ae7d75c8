"""Editing the last question in the prompt. The question and its answer stay until the new one is sent."""

from textual import events, on

from ladechat.protocol import Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted
from ladechat.screens.chat.pace_keys import PaceKeys
from ladechat.screens.chat.session_screen import STOP_FIRST
from ladechat.session.conversations.conversation import NOTHING_ANSWERED
from ladechat.widgets.prompt.prompt import Prompt

ENDS_EDITING = (Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted)
"""The events after which the last question or its answer is another one."""


class EditingQuestion(PaceKeys):
    """Offers the last question in the prompt; the conversation changes only when the edited question is sent."""

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
        """Cancel editing; the last question and its answer stay."""
        self._leave_editing()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: editing can be cancelled while it is active."""
        if action == "leave_editing":
            return self._editing.display
        return super().check_action(action, parameters)

    @on(Prompt.Commanded)
    def _leave_for_command(self) -> None:
        """End editing, since a command has replaced the question."""
        self._editing.display = False

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """End editing when the prompt is empty and loses the focus, but not to another window of the desktop."""
        if event.widget is self._prompt and self._prompt.is_blank and self.app.app_focus:
            self._editing.display = False
