"""The conversation. It is stored in the UI: each `generate` command carries all of it to the engine."""

from collections.abc import Collection
from typing import NamedTuple

from msgspec.structs import replace

from ladechat.protocol import Exchange, Generate, Message, Prefilling, Step, TurnFinished, TurnStarted
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore

COMPLETE = "This answer is complete: the model itself ended it."
NOT_ITS_OWN = "Another model, or none, wrote this answer, and only its own can be continued: ask it to go on."
NOTHING_ANSWERED = "Nothing has been answered yet."
UNANSWERED = "The last question was not answered to the end, and what came cannot go on. Ctrl+R asks it again."


class CannotContinue(Exception):
    """The reason why the last answer cannot be continued, in a sentence."""


class Waiting(NamedTuple):
    """A queued question, and whether it replaces the last exchange."""

    text: str
    replacing: bool = False


class Conversation:
    """The questions and answers so far, and the question that is being answered.

    Args:
        system: the system prompt of new conversations; the first message of each.
        max_new_tokens: the longest answer, in tokens; None: the engine's default.
        model: the name of the model that answers, as it was requested.
        store: saves the answers; None: nothing is saved.

    Attributes:
        pending: the question that is being answered.
        replaces: the exchange that the pending question replaces; None if it replaces none.
        unanswered: the last question, if it has no answer in the conversation: none was started, or it was broken off.
        continuing: whether the last answer is being continued.
        max_new_tokens: the longest answer from the next question on, in tokens; None: the engine's default.
        usual_system: the system prompt of a new conversation; "" if there is none.
        system: the system prompt; "" if there is none.
        turn: the number of the latest turn, from 1; 0 before the first.
    """

    def __init__(
        self,
        system: str | None = None,
        max_new_tokens: int | None = None,
        model: str = "",
        store: ConversationStore | None = None,
    ) -> None:
        self.pending: Message | None = None
        self.replaces: Exchange | None = None
        self.unanswered: str | None = None
        self.continuing = False
        self.usual_system = system or ""
        self.system = ""
        self._asked_with = ""  # the system prompt of the pending question
        self._exchanges: list[Exchange] = []
        self.max_new_tokens = max_new_tokens
        self.model = model
        self._store = store
        self.turn = 0
        self._latest: tuple[int, int, int | None] | None = None  # turn, steps and seed of the last answer, if known
        self._started: TurnStarted | None = None  # of the current answer, as the next two
        self._prefill_seconds = 0.0
        self._steps: list[Step] = []
        self._begin_as_usual()

    @property
    def messages(self) -> list[Message]:
        """All messages, as they are sent: this model's answers with token ids, which other models cannot use."""
        return self._said(self.system)

    def _said(self, system: str) -> list[Message]:
        said = [Message(role="system", content=system)] if system else []
        for exchange in self._exchanges:
            token_ids = exchange.token_ids if exchange.model == self.model else None
            said.append(Message(role="user", content=exchange.question))
            said.append(Message(role="assistant", content=exchange.answer, token_ids=token_ids))
        return said

    @property
    def begun(self) -> bool:
        """Whether a question has been answered."""
        return bool(self._exchanges)

    @property
    def first_question(self) -> str | None:
        """The first question that was answered; None if there is none."""
        return self._exchanges[0].question if self._exchanges else None

    @property
    def last_question(self) -> str | None:
        """The last question that was answered; None if there is none."""
        return self._exchanges[-1].question if self._exchanges else None

    def ask(self, text: str, *, replacing: bool = False) -> Generate:
        """Return the command that asks for an answer to `text`.

        Args:
            text: the question.
            replacing: whether it replaces the last exchange, which is restored if no answer comes.
        """
        self.turn += 1
        self.unanswered = None
        if replacing and self._exchanges:
            self.replaces, self._latest = self._exchanges.pop(), None
        self.pending, self._asked_with = Message(role="user", content=text), self.system
        return Generate(turn=self.turn, messages=[*self.messages, self.pending], max_new_tokens=self.max_new_tokens)

    def go_on(self, eos_ids: Collection[int]) -> Generate:
        """Return the command that continues the last answer after its last token, in the same turn if that is known,
        and with the system prompt that it started with.

        Args:
            eos_ids: the token ids that end an answer.

        Raises:
            CannotContinue: the last question has no answer, the answer is complete, or another model wrote it.
        """
        if self.unanswered is not None:
            raise CannotContinue(UNANSWERED)
        if not self._exchanges:
            raise CannotContinue(NOTHING_ANSWERED)
        token_ids = self.messages[-1].token_ids
        if not token_ids:
            raise CannotContinue(NOT_ITS_OWN)
        if token_ids[-1] in eos_ids:
            raise CannotContinue(COMPLETE)
        self.continuing = True
        if self._latest is None:
            self.turn += 1
            self._latest = self.turn, 0, None
        turn, steps, seed = self._latest
        system = self._exchanges[-1].system
        said = self._said(self.system if system is None else system)
        return Generate(turn=turn, messages=said, max_new_tokens=self.max_new_tokens, seed=seed, first_step=steps)

    def note(self, event: TurnStarted | Prefilling | Step) -> None:
        """Remember what comes of the current answer, in case its end does not come, and its seed for a continuation."""
        if isinstance(event, TurnStarted):
            self._started, self._prefill_seconds = event, 0.0
            self._steps.clear()
        elif isinstance(event, Step):
            self._steps.append(event)
        elif self._started is not None:
            self._prefill_seconds = event.t - self._started.t

    def again(self, text: str) -> Generate | None:
        """Return the command that asks for an answer to `text`, or if it is empty to the last question again; None if
        there is neither. The conversation stays as it is.
        """
        text = text or self.unanswered or ""
        messages = [*self.messages, Message(role="user", content=text)] if text else self.messages[:-1]
        if not text and not self._exchanges:
            return None
        return Generate(turn=0, messages=messages, max_new_tokens=self.max_new_tokens)

    def save_unfinished(self, decoder: str) -> None:
        """Add what has arrived of an answer, as if it had been stopped: the user quits."""
        if self._steps:
            self.answered(self._stopped(), decoder)

    def half_answer(self) -> TurnFinished | None:
        """Return the end of an answer whose engine has died, as if it had been stopped after its last step; None if no
        step has arrived, or if it was to replace another answer, which is whole.
        """
        return self._stopped() if self._steps and self.replaces is None else None

    def _stopped(self) -> TurnFinished:
        return TurnFinished(
            turn=self._steps[-1].turn,
            reason="stopped",
            text="".join(piece for step in self._steps for piece in step.pieces[step.reasoning :]),
            token_ids=[token for step in self._steps for token in step.token_ids],
            steps=len(self._steps),
            prefill_seconds=self._prefill_seconds,
            decode_seconds=sum(step.timing.step_ms for step in self._steps) / 1000,
        )

    @property
    def _seed(self) -> int | None:
        return None if self._started is None else self._started.seed

    def answered(self, event: TurnFinished, decoder: str) -> None:
        """Add an answer, or the continuation of one, also if it was stopped, with the name of its decoder. A question
        without an answer is not added.
        """
        if event.reason == "failed":
            return
        self._steps.clear()
        if not event.token_ids:
            return
        if self.continuing and self._latest is not None and event.turn == self._latest[0]:
            self._latest = event.turn, self._latest[1] + event.steps, self._seed
            last = self._exchanges[-1]
            answer, token_ids = last.answer + event.text, [*last.token_ids, *event.token_ids]
            self._exchanges[-1] = replace(last, answer=answer, token_ids=token_ids, decoder=decoder)
            self.continuing, replaces = False, True
        elif self.pending is not None and event.turn == self.turn:
            self._latest = event.turn, event.steps, self._seed
            exchange = Exchange(
                question=self.pending.content,
                answer=event.text,
                token_ids=event.token_ids,
                model=self.model,
                decoder=decoder,
                system=self._asked_with,
            )
            self._exchanges.append(exchange)
            replaces = self.replaces is not None
            self.pending = self.replaces = None
        else:
            return
        if self._store is not None:
            (self._store.replace_last if replaces else self._store.add)(self._exchanges[-1])

    def give_up(self) -> str | None:
        """Drop the pending question and return it, if any; restore the exchange that it was to replace.

        What has arrived of its answer is dropped too, unless `half_answer` was added before.
        """
        text = self.pending.content if self.pending else None
        if self.replaces is not None:
            self._exchanges.append(self.replaces)
        elif text is not None:
            self.unanswered = text
        self.pending, self.replaces, self.continuing = None, None, False
        self._steps.clear()
        return text

    def instruct(self, system: str) -> None:
        """Set the system prompt from the next question on; "" removes it."""
        self.system = system
        if self._store is not None:
            self._store.instruct(system)

    def use_model(self, model: str) -> None:
        """Set the model that answers."""
        if model != self.model:
            self.model, self._latest = model, None

    def begin_new(self) -> None:
        """Start a new conversation, with the usual system prompt, whatever the previous one had."""
        self._leave()
        self._begin_as_usual()

    def _leave(self) -> None:
        self._exchanges.clear()
        self.pending, self.replaces, self.unanswered = None, None, None
        self.continuing, self._latest, self._started = False, None, None
        self._steps.clear()
        if self._store is not None:
            self._store.begin_new()

    def _begin_as_usual(self) -> None:
        self.system = self.usual_system
        if self.system and self._store is not None:
            self._store.instruct(self.system)

    def open(self, saved: SavedConversation) -> list[Exchange]:
        """Continue a saved conversation in place of this one, with its own system prompt, or none.

        Returns:
            Its exchanges, as the file has them now.
        """
        self._leave()
        if self._store is not None:
            saved = self._store.open(saved)
        self.system = saved.system or ""
        self._exchanges += saved.exchanges
        return saved.exchanges


class SingleQuestions(Conversation):
    """A conversation that forgets each question with its answer, for decoders without learnt n-grams: each answer is
    reproducible, whatever was asked before.
    """

    def ask(self, text: str, *, replacing: bool = False) -> Generate:
        """Return the command that asks for an answer to `text` as if nothing had been asked before."""
        self.begin_new()
        return replace(super().ask(text, replacing=replacing), fresh=True)

    def half_answer(self) -> None:
        """Return None: a lesson looks at whole answers, and begins again after its engine has died."""
