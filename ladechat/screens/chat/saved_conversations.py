"""The saved conversations in the chat: start another, or open one."""

from ladechat.preferences import NOTHING_SAVED
from ladechat.saved_drafts import forget_drafts
from ladechat.screens.chat.context import STOP_FIRST, ChatContext
from ladechat.screens.chat.model_choice import ModelChoice
from ladechat.screens.lists.conversations import Chosen, ConversationsScreen
from ladechat.screens.reading import ReadingScreen
from ladechat.session.conversations.saved import Branch, SavedConversation, Viewed, title_of
from ladechat.session.conversations.search import MatchPlace
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine import LOADED
from ladechat.widgets.dates import dated
from ladechat.widgets.formatting import counted, name_of

REMOVED = "The conversation is not saved: its file has been removed."
WHILE_ANSWERING = "During an answer, Enter shows a conversation to read; it can go on once the answer has ended."
STILL_ANSWERED = "It can be opened once the answer has ended, or is stopped (Esc); until then it can be read."
UNREAD = "The file of this conversation is damaged; what cannot be read is left out ({}): {}"


class SavedConversations:
    """The current conversation as a whole, and the saved ones; without a store, nothing is saved."""

    def __init__(self, chat: ChatContext, store: ConversationStore | None, models: ModelChoice) -> None:
        self._chat, self._session, self._models = chat, chat.session, models
        self.store = store
        self._opened: tuple[int, str] | None = None
        """The turn when a conversation was opened, and the date of its last answer, shown until the next turn."""
        self._answered_by = ""  # the opened conversation's last model, until its change is reported

    def action_new_conversation(self) -> None:
        """Start a new conversation, unless a question is being answered."""
        if self._session.asking:
            self._chat.refuse(STOP_FIRST)
            return
        self.note_view()
        begun, self._answered_by, self._opened = self._session.conversation.begun, "", None
        lost = self._why_not_saved() if begun else ""
        self._session.clear()
        if lost:
            self._chat.notify(lost, severity="warning")
        elif begun:
            self._chat.notify("The conversation is saved: Ctrl+O finds it.")

    def _why_not_saved(self) -> str:
        """Return why the conversation is not saved; "" if it is."""
        if self.store is None:
            return NOTHING_SAVED
        if self.store.save():
            return ""
        return REMOVED if self.store.removed else f"The conversation could not be saved in {self.store.folder}."

    def action_conversations(self) -> None:
        if self.store is None:
            self._chat.refuse(NOTHING_SAVED)
        else:
            hint = WHILE_ANSWERING if self._session.asking else ""
            self._chat.screen.app.push_screen(ConversationsScreen(self.store, hint), self._open_chosen)

    def action_forget(self) -> None:
        """Delete what drafting has learnt from answers. The conversations stay."""
        try:
            forget_drafts()
        except OSError as error:
            self._chat.refuse(f"Not all of it can be deleted: {error.strerror or error}.", severity="error")
        else:
            self._chat.notify("What drafting has learnt from earlier answers is deleted. Saved conversations stay.")

    def action_rename(self, title: str) -> None:
        if self.store is None:
            self._chat.refuse(NOTHING_SAVED)
        else:
            self.store.entitle(title)
            self.show_title()
            if not title.strip():
                self._chat.notify("The title is the first question again.")

    def _open_chosen(self, chosen: Chosen | None) -> None:
        """Continue the chosen conversation, at the place of the match; while a question is answered, only show it."""
        self.show_title()  # the list may have given another
        if chosen is None or self.store is None:
            return
        if self._session.asking and chosen.conversation.path != self.store.path:
            reading = ReadingScreen(chosen, formatted=self._chat.view.transcript.formatted)
            self._chat.screen.app.push_screen(reading, self._open_read)
        elif self.open(chosen.conversation) and chosen.place is not None:
            self._show_place(chosen.place)

    def _show_place(self, place: MatchPlace) -> None:
        """Show the place of a match in the open conversation, and the variant that it is in."""
        tree = self._session.conversation.tree
        if place.exchange not in tree.path and self._session.asking:
            self._chat.refuse(STOP_FIRST)
            return
        if place.exchange not in tree.path and place.exchange in tree.parents:
            self._session.apply(Branch(number=place.exchange))
        if place.exchange in tree.path:
            shown = tree.path.index(place.exchange)
            self._chat.view.presenter.show_place(shown, place.text, answer=place.answer)

    def _open_read(self, chosen: Chosen | None) -> None:
        """Continue the conversation that was read."""
        if chosen is not None and self._session.asking:
            self._chat.refuse(STILL_ANSWERED)
        else:
            self._open_chosen(chosen)

    def open(self, conversation: SavedConversation | None) -> bool:
        """Continue a conversation, unless a question is being answered; return whether it is open then."""
        if conversation is None or self.store is None:
            return False
        if conversation.path == self.store.path:
            return True
        if self._session.asking:
            self._chat.refuse(STOP_FIRST)
            return False
        self.note_view()
        lost = self._why_not_saved() if self._session.conversation.begun else ""
        self._session.open(conversation)
        self._opened = self._session.conversation.turn, dated(conversation.when)
        transcript, view = self._chat.view.transcript, conversation.view
        transcript.formatted = transcript.formatted if view is None else view.formatted
        transcript.anchor()
        if view is not None and view.message is not None:
            transcript.scroll_to_line(view.message, view.row)
        self._answered_by = conversation.model
        if self._session.state in LOADED:
            self.say_which_model_answers()
        if lost:
            self._chat.notify(lost, severity="warning")
        if conversation.unread:
            self._chat.notify(
                UNREAD.format(counted(conversation.unread, "line"), conversation.path), severity="warning"
            )
        if why := self.store.why_copied:
            self._chat.notify(f"‘{conversation.title}’ {why}: what you ask now goes on in a copy of it.")
        return True

    def note_view(self) -> None:
        """Save how the conversation is shown, for the next time that it is opened."""
        if self.store is not None:
            transcript = self._chat.view.transcript
            message, row = transcript.place_in_view
            self.store.note_view(Viewed(formatted=transcript.formatted, message=message, row=row))

    def show_title(self) -> None:
        """Show the title of a saved conversation, and when it was answered last, if that was in an earlier session."""
        conversation, title = self._session.conversation, ""
        if self.store is not None:
            title = self.store.title or (title_of(conversation.exchanges[0].question) if conversation.begun else "")
        if title and self._opened is not None and self._opened[0] == conversation.turn:
            title += f" · {self._opened[1]}"
        self._chat.view.show_title(title)

    def show_copy(self) -> None:
        self._chat.view.show_copy("" if self.store is None else self.store.why_copied)

    def say_which_model_answers(self) -> None:
        """Report if an opened conversation was answered by another model than the one that is loaded."""
        before, self._answered_by = self._answered_by, ""
        same = name_of(before) == name_of(self._session.conversation.model)  # in a folder that was moved, for one
        if before and not same and before not in self._models.failed:
            now = f"{name_of(self._session.conversation.model)} goes on with it"
            said = f"{name_of(before)} answered here last; {now}. /model {before} takes that one."
            self._chat.notify(said)

    def report_failures(self) -> None:
        """Report from now on when the conversation cannot be saved."""
        if self.store is not None:
            self.store.failed = self._store_failed

    def _store_failed(self, error: OSError) -> None:
        if self._chat.screen.is_running and self.store is not None:
            why = f"The conversation cannot be saved in {self.store.folder}: {error.strerror or error}."
            self._chat.notify(f"{why} The chat goes on; each answer tries again.", severity="error")
