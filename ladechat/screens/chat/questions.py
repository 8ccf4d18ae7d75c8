"""The questions: sending them, the queue of those sent during an answer, and the last one once more."""

from textual.widgets import Label

from ladechat.protocol import MOST_TEXT, Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted
from ladechat.screens.chat.context import STOP_FIRST, Available, ChatContext
from ladechat.screens.chat.typed_question import TypedQuestion
from ladechat.session.conversations.conversation import NOTHING_ANSWERED, CannotContinue
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.engine import State
from ladechat.widgets.prompt.above_prompt import WaitingQuestions

EDITING = "Editing the last question; Esc keeps it and its answer."
ENDS_EDITING = (Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted)
"""The events after which the last question or its answer is another one."""
WAITING_FIRST = "Questions that wait are asked first; ↑ takes the last of them back."


def too_long(text: str) -> str:
    """Return why a text is not sent as a question, if it is too long; else ""."""
    return f"More than {MOST_TEXT:,} characters are not sent; ask a shorter question." if len(text) > MOST_TEXT else ""


class Questions:
    """Sends questions, and offers them in the prompt for editing. The last question and its answer stay until the
    edited one is sent.

    Args:
        chat: the session and the prompt.
        typed: adds the files that a question names.
        queue: shows the questions that wait.
        editing: is shown while the last question is being edited.
        history: the questions of earlier sessions; None: they are not saved.
    """

    def __init__(
        self,
        chat: ChatContext,
        typed: TypedQuestion,
        queue: WaitingQuestions,
        editing: Label,
        history: PromptHistory | None,
    ) -> None:
        self._chat, self._session, self._prompt, self._typed = chat, chat.session, chat.prompt, typed
        self._queue, self._editing, self._history = queue, editing, history
        self._editing.display = False
        self.available: Available = {
            "take_back": lambda: bool(self._session.waiting),
            "leave_editing": lambda: self._editing.display,
        }

    def remember(self) -> None:
        """Give the questions of earlier sessions to the prompt."""
        if self._history is not None:
            questions, problem = self._history.read()
            self._prompt.remember(questions)
            if problem:
                self._chat.notify(problem, severity="warning", timeout=10)

    def show_queue(self) -> None:
        """Show the questions that wait."""
        self._queue.questions = self._session.waiting

    def send(self, text: str) -> None:
        """Ask a question with its files, or put it into the queue; if it cannot be sent, give it back to the prompt."""
        if self._history is not None:
            self._history.add(text)
        if self._session.state is State.ENDED:
            self._prompt.offer(text)
            self._chat.refuse(self._chat.no_engine)
            return
        question = self._typed.sent(text)
        if question is None:
            return
        if why := too_long(question):
            self._prompt.offer(text)
            self._chat.notify(why, severity="warning")
            return
        self._chat.view.transcript.anchor()
        if self._session.asking:
            self._session.ask_later(question)
        else:
            replacing = self._editing.display
            self.end_editing()
            self._session.ask(question, replacing=replacing)

    # --- editing ------------------------------------------------------------------------------------------------------

    def offer(self, question: str, *, replacing: bool) -> None:
        """Put a question into the prompt if it is empty: as a new question, or in place of the last one."""
        if self._prompt.is_blank:
            self._prompt.offer(self._typed.typed(question))
            self._editing.display = replacing

    def action_take_back(self) -> None:
        """Move the last question of the queue into the prompt."""
        if not self._prompt.is_blank:
            self._chat.notify("Send or clear first what stands in the prompt.", severity="warning")
        elif (waiting := self._session.take_back_waiting()) is not None:
            self.offer(waiting.text, replacing=waiting.replacing)

    def action_edit_question(self) -> None:
        """Put the last question into the prompt."""
        question = self._session.conversation.last_question
        if self._prompt.text:
            self._chat.refuse("Send or clear what is in the prompt first.")
        elif self._session.asking:
            self._chat.refuse(STOP_FIRST)
        elif question is None:
            self._chat.refuse(NOTHING_ANSWERED)
        else:
            self.offer(question, replacing=True)
            self._prompt.focus()

    def action_leave_editing(self) -> None:
        """Cancel editing the last question: it stays as it was, and the prompt is cleared."""
        if self._editing.display:
            self.end_editing()
            self._prompt.clear()

    def end_editing(self) -> None:
        """Take the text in the prompt, if any, for a new question."""
        self._editing.display = False

    # --- once more ----------------------------------------------------------------------------------------------------

    def action_ask_again(self) -> None:
        """Ask the last question again; the present answer is replaced, unless no new one comes."""
        conversation = self._session.conversation
        unanswered = conversation.unanswered
        if self._session.state is State.ENDED:
            self._chat.refuse(self._chat.no_engine)
        elif self._session.asking:
            self._chat.refuse(STOP_FIRST)
        elif self._session.waiting:
            self._chat.refuse(WAITING_FIRST)
        elif (question := unanswered or conversation.last_question) is None:
            self._chat.refuse(NOTHING_ANSWERED)
        else:
            self._chat.view.transcript.anchor()
            self._session.ask(question, replacing=unanswered is None)
            if self._prompt.text == self._typed.typed(question):  # given back when it got no answer
                self._prompt.load_text("")
            if not self._session.requested.temperature:
                again = "At temperature 0 the text is the same again; the slider T makes it another."
                self._chat.notify(again)

    def action_continue(self) -> None:
        """Continue the last answer where it was stopped, or where its length limit ended it."""
        if self._session.asking:
            self._chat.refuse(STOP_FIRST)
        elif self._session.state is State.ENDED:
            self._chat.refuse(self._chat.no_engine)
        else:
            try:
                self._session.go_on()
            except CannotContinue as refused:
                self._chat.refuse(str(refused))
            else:
                self._chat.view.presenter.expect_answer()
                self._chat.view.transcript.anchor()
