"""The saved conversations in the chat: start or open one, ask its last question again, or continue its last answer."""

from typing import Any

from ladechat.screens.chat.session_screen import STOP_FIRST, SessionScreen
from ladechat.screens.lists.conversations import Chosen, ConversationsScreen
from ladechat.session.conversations.conversation import NOTHING_ANSWERED, CannotContinue
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.source import LOADED, State
from ladechat.widgets.formatting import name_of

REMOVED = "The conversation is not kept: its file has been removed."
WAITING_FIRST = "Questions that wait are asked first; ↑ takes the last of them back."
NOTHING_SAVED = "Nothing is kept: ladechat was started with --no-save."


class KeptConversations(SessionScreen):
    """The current conversation as a whole, and the saved ones.

    Args:
        store: saves the conversations; None: nothing is saved.
    """

    _failed: set[str]

    def __init__(self, *args: Any, store: ConversationStore | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = store
        self._answered_by = ""  # the opened conversation's last model, until its change is reported

    def on_mount(self) -> None:
        if self._store is not None:
            self._store.failed = self._store_failed

    def action_new_conversation(self) -> None:
        """Start a new conversation, unless a question is being answered."""
        if self._session.asking:
            self._refuse(STOP_FIRST)
            return
        begun, self._answered_by = self._session.conversation.begun, ""
        lost = self._why_not_saved() if begun else ""
        self._session.clear()
        if lost:
            self.notify(lost, severity="warning")
        elif begun:
            self.notify("The conversation is kept: Ctrl+O finds it.")

    def _show_copy(self) -> None:
        self.view.show_copy("" if self._store is None else self._store.why_copied)

    def _why_not_saved(self) -> str:
        """Return why the conversation is not saved; "" if it is."""
        if self._store is None:
            return NOTHING_SAVED
        if self._store.save():
            return ""
        return REMOVED if self._store.removed else f"The conversation could not be kept in {self._store.folder}."

    def action_conversations(self) -> None:
        """Show the saved conversations."""
        if self._store is None:
            self._refuse(NOTHING_SAVED)
        else:
            self.app.push_screen(ConversationsScreen(self._store), self._open_chosen)

    def _open_chosen(self, chosen: Chosen | None) -> None:
        """Continue the chosen conversation, at the place of the match."""
        if chosen is not None and self._open(chosen.conversation) and chosen.place is not None:
            self.view.presenter.show_place(chosen.place.message, chosen.place.text)

    def _open(self, conversation: SavedConversation | None) -> bool:
        """Continue a conversation, unless a question is being answered; return whether it is open then."""
        if conversation is None or self._store is None:
            return False
        if conversation.path == self._store.path:
            return True
        if self._session.asking:
            self._refuse(STOP_FIRST)
            return False
        self._session.open(conversation)
        self.view.transcript.anchor()
        self._answered_by = conversation.model
        if self._session.state in LOADED:
            self._say_which_model_answers()
        if why := self._store.why_copied:
            self.notify(f"‘{conversation.title}’ {why}: what you ask now goes on in a copy of it.")
        return True

    def _say_which_model_answers(self) -> None:
        """Report if an opened conversation was answered by another model than the one that is loaded."""
        before, self._answered_by = self._answered_by, ""
        if before not in ("", self._session.conversation.model, *self._failed):
            now = f"{name_of(self._session.conversation.model)} goes on with it"
            self.notify(f"{name_of(before)} answered here last; {now}. /model {before} takes that one.")

    def _store_failed(self, error: OSError) -> None:
        if self.is_running and self._store is not None:
            why = f"The conversation cannot be kept in {self._store.folder}: {error.strerror or error}."
            self.notify(f"{why} The chat goes on; each answer tries again.", severity="error")

    def action_ask_again(self) -> None:
        """Ask the last question again; the present answer is replaced, unless no new one comes."""
        conversation = self._session.conversation
        unanswered = conversation.unanswered
        if self._session.state is State.ENDED:
            self._refuse_without_engine()
            return
        if self._session.asking:
            self._refuse(STOP_FIRST)
        elif self._session.waiting:
            self._refuse(WAITING_FIRST)
        elif (question := unanswered or conversation.last_question) is None:
            self._refuse(NOTHING_ANSWERED)
        else:
            self.view.transcript.anchor()
            self._session.ask(question, replacing=unanswered is None)
            if self._prompt.text == question:  # it was given back to the prompt when it got no answer
                self._prompt.load_text("")
            if not self._session.requested.temperature:
                self.notify("At temperature 0 the text is the same again; the slider T makes it another.")

    def action_continue(self) -> None:
        """Continue the last answer where it was stopped, or where its length limit ended it."""
        if self._session.asking:
            self._refuse(STOP_FIRST)
        elif self._session.state is State.ENDED:
            self._refuse_without_engine()
        else:
            try:
                self._session.go_on()
            except CannotContinue as refused:
                self._refuse(str(refused))
            else:
                self.view.presenter.expect_answer()
                self.view.transcript.anchor()
