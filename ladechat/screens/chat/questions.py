"""The questions: sending them, the queue of those sent during an answer, earlier ones once more, and their variants."""

from textual.widgets import Label

from ladechat.own_keys import with_own_keys
from ladechat.protocol import MOST_TEXT, Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted
from ladechat.screens.chat.context import STOP_FIRST, Available, ChatContext
from ladechat.screens.chat.typed_question import TypedQuestion
from ladechat.session.conversations.conversation import NOTHING_ANSWERED, CannotContinue
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import Branch
from ladechat.session.conversations.tree import ExchangeTree
from ladechat.session.engine import State
from ladechat.widgets.prompt.above_prompt import WaitingQuestions
from ladechat.widgets.transcript.transcript import QuestionPointedAt

EDITING = "Editing question {} of {}. It stays, too, with all after it; Esc cancels."
CHOSEN = "Question {} of {}. What you ask follows it; all after it stays as a variant."
LAST_CHOSEN = "Question {} of {}. What you ask follows it."
ONLY_VARIANT = "There is no other variant of this question: Ctrl+R answers it again, Ctrl+T edits it."
ONLY_FIRST = "The first question stays, as it has no other variant. Ctrl+L begins a new conversation."
DELETED = "Deleted, with all after it. /undelete brings it back."
VARIANT_DELETED = "Deleted, with all after it; another variant stands in its place. /undelete undoes that."
CLEAR_FIRST = "Send or clear what is in the prompt first."
NOTHING_DELETED = "Nothing is deleted in this conversation."
ENDS_EDITING = (Asked, ConversationCleared, ConversationOpened, ExchangeRemoved, TurnStarted)
"""The events after which the last question or its answer is another one."""
WAITING_FIRST = "Questions that wait are asked first; ↑ takes the last of them back."


def too_long(text: str) -> str:
    """Return why a text is not sent as a question, if it is too long; else ""."""
    return f"More than {MOST_TEXT:,} characters are not sent; ask a shorter question." if len(text) > MOST_TEXT else ""


class Questions:
    """Sends questions, and offers them in the prompt for editing. An edited question and all after it stay until it is
    sent, and can be shown again after that.

    Args:
        typed: adds the files that a question names.
        queue: shows the questions that wait.
        where: says where the next question goes, if it is not asked after all others.
        history: the questions of earlier sessions; None: they are not saved.
    """

    def __init__(
        self,
        chat: ChatContext,
        typed: TypedQuestion,
        queue: WaitingQuestions,
        where: Label,
        history: PromptHistory | None,
    ) -> None:
        self._chat, self._session, self._prompt, self._typed = chat, chat.session, chat.prompt, typed
        self._queue, self._where, self._history = queue, where, history
        self._presenter, self._transcript = chat.view.presenter, chat.view.transcript
        self._editing: int | None = None  # the place of the exchange whose question is being edited
        self._turned: tuple[ExchangeTree, list[int], int] | None = None  # tree, path, and place whose variant was shown
        self._labelled: tuple[object, ...] = ()
        self._where.display = False
        self.available: Available = {
            "take_back": lambda: bool(self._session.waiting),
            "leave_editing": lambda: self._editing is not None,
            "leave_question": lambda: self._presenter.chosen is not None,
            "delete": lambda: self._presenter.chosen is not None,
        }

    def remember(self) -> None:
        """Give the questions of earlier sessions to the prompt."""
        if self._history is not None:
            questions, problem = self._history.read()
            self._prompt.remember(questions)
            if problem:
                self._chat.notify(problem, severity="warning", timeout=10)

    def save_draft(self) -> None:
        """Save what stands in the prompt for ↑ in the next session, as the app ends."""
        if self._history is not None and (draft := self._prompt.draft).strip():
            self._history.add(draft)

    @property
    def _place(self) -> int:
        """The place of the chosen question, or else of the last one."""
        return len(self._presenter.now.exchanges) - 1 if self._presenter.chosen is None else self._presenter.chosen

    def show(self) -> None:
        """Show the questions that wait, the variants of others, and where the next one goes if not to the end."""
        self._queue.questions = self._session.waiting
        conversation, tree = self._session.conversation, self._session.conversation.tree
        labelled = (self._transcript.blocks, self._presenter.chosen, *tree.path)
        if labelled != self._labelled:
            self._labelled, variants = labelled, tree.variants
            for place, (block, number) in enumerate(zip(self._presenter.now.exchanges, tree.path, strict=False)):
                of = variants[tree.parents[number]]
                self._transcript.label(block, of.index(number) + 1, len(of), chosen=place == self._presenter.chosen)
        count, at, text = len(conversation.exchanges), self._presenter.chosen, CHOSEN
        if self._editing is not None:
            at, text = self._editing, EDITING
        elif at == count - 1:
            text = LAST_CHOSEN
        said = "" if at is None else text.format(at + 1, count)
        said = with_own_keys(said, self._chat.screen.app, "leave_editing")
        if said != self._where.content:
            self._where.display = bool(said)
            self._where.update(said)

    def send(self, text: str) -> None:
        """Ask a question with its files, or put it into the queue; if it cannot be sent, give it back to the prompt."""
        if self._history is not None:
            self._history.add(text)
        if self._session.state is State.ENDED:
            self._prompt.offer(text)
            self._chat.refuse(self._chat.no_engine)
            return
        question = self._typed.attach(text)
        if question is None:
            return
        if why := too_long(question):
            self._prompt.offer(text)
            self._chat.refuse(why)
            return
        self._transcript.anchor()
        if self._session.asking:
            self._session.ask_later(question)
        else:
            place = self._editing
            if place is None and self._presenter.chosen is not None:
                place = self._presenter.chosen + 1
            self.end_editing()
            self._session.ask(question, place)

    # --- editing ------------------------------------------------------------------------------------------------------

    def offer(self, question: str, place: int | None) -> None:
        """Put a question into the prompt if it is empty: in place of an exchange, or as a new question."""
        if self._prompt.is_blank:
            self._prompt.offer(self._typed.as_typed(question))
            self._editing = place
            self.show()

    def action_take_back(self) -> None:
        """Move the last question of the queue into the prompt."""
        if not self._prompt.is_blank:
            self._chat.refuse(CLEAR_FIRST)
        elif (waiting := self._session.take_back_waiting()) is not None:
            self.offer(*waiting)

    def action_edit_question(self) -> None:
        """Put the last question, or the chosen one, into the prompt."""
        if self._prompt.text:
            self._chat.refuse(CLEAR_FIRST)
        elif self._may_act():
            self.offer(self._session.conversation.exchanges[self._place].question, self._place)
            self._prompt.focus()

    def action_leave_editing(self) -> None:
        """Cancel editing a question: it stays as it was, and the prompt is cleared."""
        if self._editing is not None:
            self.end_editing()
            self._prompt.clear()

    def end_editing(self) -> None:
        """Take the text in the prompt, if any, for a new question."""
        self._editing = None
        self.show()

    # --- earlier questions --------------------------------------------------------------------------------------------

    def point_at(self, event: QuestionPointedAt) -> None:
        """Choose a question that was clicked, unless it has no answer, or show another variant of it."""
        questions = self._presenter.now.exchanges
        if event.block in questions and self._may_act():
            self._choose(questions.index(event.block))
            if event.by:
                self.action_variant(event.by)
        self._prompt.focus()

    def action_choose(self, by: int) -> None:
        """Move the choice by so many questions; after the last, none is chosen."""
        if self._may_act():
            place = max(self._place + by + (self._presenter.chosen is None), 0)
            self._choose(place if place < len(self._presenter.now.exchanges) else None)

    def action_leave_question(self) -> None:
        self._choose(None)

    def action_variant(self, by: int) -> None:
        """Show the variant so many on, of the chosen question, or else of the last one; after the last comes the
        first. Pressed again, it turns the same question, though others may follow it now.
        """
        if self._may_act():
            tree, chosen, place = self._session.conversation.tree, self._presenter.chosen, self._place
            if self._turned is not None and self._turned[0] is tree and self._turned[1] == tree.path:
                place = self._turned[2]  # the next variant of the same question, though others follow it now
            number = tree.path[place]
            variants = tree.variants[tree.parents[number]]
            if len(variants) > 1:
                self._session.apply(Branch(number=variants[(variants.index(number) + by) % len(variants)]))
                self._choose(chosen)
                self._turned = tree, [*tree.path], place
            else:
                self._chat.refuse(ONLY_VARIANT)

    def action_delete(self) -> None:
        """Delete the chosen question, with its answer and all after it."""
        if self._presenter.chosen is not None and self._may_act():
            tree, place = self._session.conversation.tree, self._presenter.chosen
            deleted = self._session.apply(Branch(number=tree.path[place], shown=False))
            self._choose(None)
            self._show_question(place)
            replaced = VARIANT_DELETED if len(tree.path) > place else DELETED
            self._chat.notify(replaced if deleted else ONLY_FIRST)

    def action_undelete(self) -> None:
        """Bring back what was deleted last."""
        deleted = self._session.conversation.tree.deleted
        if not deleted:
            self._chat.refuse(NOTHING_DELETED)
        elif self._may_act():
            number = deleted[-1]
            self._session.apply(Branch(number=number))
            self._choose(None)
            self._show_question(self._session.conversation.tree.path.index(number))

    def _choose(self, place: int | None) -> None:
        """Choose a question, and scroll to it, or choose none, and follow the end."""
        self._presenter.chosen, self._turned = place, None
        if place is None:
            self._transcript.anchor()
        else:
            self._presenter.inspection.leave()
            self._show_question(place)
        self._session.changed()

    def _show_question(self, place: int) -> None:
        """Scroll to the question of the shown exchange number `place`, from 0; if there are fewer, do nothing."""
        for block in self._presenter.now.exchanges[place : place + 1]:
            self._transcript.show_place(block, 0, "")

    def _may_act(self) -> bool:
        """Return whether there is a question, and none is being answered; else report that."""
        why = STOP_FIRST if self._session.asking else "" if self._session.conversation.begun else NOTHING_ANSWERED
        if why:
            self._chat.refuse(why)
        return not why

    # --- once more ----------------------------------------------------------------------------------------------------

    def action_ask_again(self) -> None:
        """Ask the last question, or the chosen one, again; what comes after it stays as another variant."""
        conversation, place = self._session.conversation, self._place
        unanswered = conversation.unanswered if self._presenter.chosen is None else None
        if self._session.state is State.ENDED:
            self._chat.refuse(self._chat.no_engine)
        elif self._session.waiting and not self._session.asking:
            self._chat.refuse(WAITING_FIRST)
        elif unanswered or self._may_act():
            question = unanswered or conversation.exchanges[place].question
            self._transcript.anchor()
            self._session.ask(question, None if unanswered else place)
            if self._prompt.text == self._typed.as_typed(question):  # given back when it got no answer
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
                self._presenter.expect_answer()
                self._transcript.anchor()
