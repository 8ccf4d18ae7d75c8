"""The conversation. It is stored in the UI: each `generate` command carries all of it to the engine."""

from collections.abc import Collection
from typing import NamedTuple

from msgspec.structs import replace

from ladechat.protocol import (
    Exchange,
    ExchangeRestored,
    Generate,
    Message,
    Prefilling,
    ServerInfo,
    Step,
    TurnFinished,
    TurnStarted,
    drawn,
    end_of,
    joined,
    one_by_one,
    packed,
    to_save,
    unpacked,
    without_times,
)
from ladechat.session.conversations.saved import Branch, SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.conversations.tree import ROOT, ExchangeTree

COMPLETE = "This answer is complete: the model itself ended it."
NOT_ITS_OWN = "This model did not write the answer, and can continue only its own: ask it to go on."
NOTHING_ANSWERED = "Nothing has been answered yet."
UNANSWERED = "The last question has no answer that can be continued. Ctrl+R asks it again."


class CannotContinue(Exception):
    """The reason why the last answer cannot be continued, in a sentence."""


class Waiting(NamedTuple):
    """A queued question, and the place of the exchange that it replaces; None if it stands after all."""

    text: str
    place: int | None = None


class Conversation:
    """The questions and answers so far, and the question that is being answered: a path through a tree of exchanges.

    Args:
        system: the system prompt of new conversations; the first message of each.
        model: the name of the model that answers, as it was requested.
        store: saves the answers; None: nothing is saved.

    Attributes:
        pending: the question that is being answered.
        unanswered: the last question, if it has no answer in the conversation: none was started, or it was broken off.
        continuing: whether the last answer is being continued.
        max_new_tokens: the longest answer from the next question on, in tokens; None: the engine's default.
        usual_system: the system prompt of a new conversation; "" if there is none.
        system: the system prompt; "" if there is none.
        turn: the number of the latest turn, from 1; 0 before the first.
        server: the server that answers; None: this machine does.
    """

    def __init__(
        self,
        system: str | None = None,
        max_new_tokens: int | None = None,
        model: str = "",
        store: ConversationStore | None = None,
    ) -> None:
        self.pending: Message | None = None
        self.unanswered: str | None = None
        self.continuing = False
        self.usual_system = system or ""
        self.system = ""
        self._asked_with = ""  # the system prompt of the pending question
        self.tree = ExchangeTree()
        self._before_pending: int | None = None  # number of shown exchanges before the pending question
        self.max_new_tokens = max_new_tokens
        self.model = model
        self._store = store
        self.turn = 0
        self._latest: tuple[int, int, int | None] | None = None  # turn, steps and seed of the last answer, if known
        self._started: TurnStarted | None = None  # of the current answer, as the next two
        self._prefill_seconds = 0.0
        self._steps: list[Step] = []
        self._slowed = False  # whether any of them was slowed down for the viewer
        self.server: ServerInfo | None = None
        self._begin_as_usual()

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges so far, without those that the pending question replaces."""
        return [self.tree.exchanges[number] for number in self.tree.path[: self._before_pending]]

    @property
    def replaced(self) -> list[ExchangeRestored]:
        """The exchanges that the pending question replaces, to be restored if no answer comes."""
        path = self.tree.path[len(self.exchanges) :]
        return [ExchangeRestored(exchange=self.tree.exchanges[number]) for number in path]

    @property
    def messages(self) -> list[Message]:
        """All messages, as they are sent: this model's answers with token ids, which other models cannot use."""
        return self._said(self.system)

    def _said(self, system: str) -> list[Message]:
        said = [Message(role="system", content=system)] if system else []
        for exchange in self.exchanges:
            token_ids = exchange.token_ids if exchange.model == self.model else None
            said.append(Message(role="user", content=exchange.question))
            said.append(Message(role="assistant", content=exchange.answer, token_ids=token_ids))
        return said

    @property
    def begun(self) -> bool:
        """Whether a question has been answered."""
        return bool(self.exchanges)

    def ask(self, text: str, place: int | None = None) -> Generate:
        """Return the command that asks for an answer to `text`. The exchanges from `place` on are replaced when it is
        answered, and come back if it is not; None: it replaces none.
        """
        self.turn += 1
        self.unanswered = None
        self._before_pending = len(self.tree.path[:place])
        if self.replaced:
            self._latest = None
        self.pending, self._asked_with = Message(role="user", content=text), self.system
        return Generate(turn=self.turn, messages=[*self.messages, self.pending], max_new_tokens=self.max_new_tokens)

    def go_on(self, eos_ids: Collection[int]) -> Generate:
        """Return the command that continues the last answer after its last token, with the system prompt and the switch
        for thinking that it began with, and with its turn and seed, if they are known.

        Args:
            eos_ids: the tokens that end an answer: one that ends with them is complete.

        Raises:
            CannotContinue: the last question has no answer, the answer is complete, or another model wrote it.
        """
        if self.unanswered is not None:
            raise CannotContinue(UNANSWERED)
        if not self.begun:
            raise CannotContinue(NOTHING_ANSWERED)
        token_ids = self.messages[-1].token_ids
        if not token_ids:
            raise CannotContinue(NOT_ITS_OWN)
        if token_ids[-1] in eos_ids:
            raise CannotContinue(COMPLETE)
        self.continuing = True
        if self._latest is None:
            self.turn += 1
            self._latest = self.turn, len(drawn(self.exchanges[-1].steps)), None
        turn, steps, seed = self._latest
        system, settings = self.exchanges[-1].system, self.exchanges[-1].settings
        return Generate(
            turn=turn,
            messages=self._said(self.system if system is None else system),
            max_new_tokens=self.max_new_tokens,
            seed=seed,
            first_step=steps,
            thinking=None if settings is None else settings.thinking,
        )

    def note(self, event: TurnStarted | Prefilling | Step, *, slowed: bool = False) -> None:
        """Remember the steps of the current answer, in case its end never arrives, and its seed for a continuation.
        `slowed`: passes are slowed down for the viewer, and their times do not count.
        """
        if isinstance(event, TurnStarted):
            self._started, self._prefill_seconds, self._slowed = event, 0.0, False
            self._steps.clear()
        elif isinstance(event, Step):
            self._steps.append(event)
            self._slowed = self._slowed or slowed
        elif self._started is not None:
            self._prefill_seconds = event.t - self._started.t

    def race_command(self, text: str) -> Generate | None:
        """Return the command that asks `text`, or if it is empty the last question, in a race: it does not change the
        conversation. None if there is neither.
        """
        text = text or self.unanswered or ""
        messages = [*self.messages, Message(role="user", content=text)] if text else self.messages[:-1]
        if not text and not self.begun:
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
        return self._stopped() if self._steps and not self.replaced else None

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
        steps, self._steps = one_by_one(self._steps, event.pass_tokens), []
        if not event.token_ids:
            return
        ended = without_times(event) if self._slowed else event
        if self.continuing and self._latest is not None and event.turn == self._latest[0]:
            self._latest = event.turn, self._latest[1] + event.steps, self._seed
            number, last = self.tree.path[-1], self.exchanges[-1]
            answer, token_ids = last.answer + event.text, [*last.token_ids, *event.token_ids]
            before = unpacked(last.steps, event.turn)
            came = packed([*before, *steps]) if last.steps else b""
            ended = to_save(joined(end_of(last, len(before)), ended))
            exchange = replace(last, answer=answer, token_ids=token_ids, decoder=decoder, steps=came, ended=ended)
            self.tree.exchanges[number], self.continuing = exchange, False
            if self._store is not None:
                self._store.replace_last(exchange, number)
        elif self.pending is not None and event.turn == self.turn:
            self._latest = event.turn, event.steps, self._seed
            exchange = Exchange(
                question=self.pending.content,
                answer=event.text,
                token_ids=event.token_ids,
                model=self.model,
                decoder=decoder,
                system=self._asked_with,
                settings=None if self._started is None else self._started.settings,
                steps=packed(steps),
                server=self.server,
                ended=to_save(ended),
            )
            after, replaced = [ROOT, *self.tree.path][len(self.exchanges)], len(self.replaced)
            self.tree.add(exchange, after)
            self.pending = self._before_pending = None
            if self._store is not None:
                self._store.add(exchange, after, replaced)

    def give_up(self) -> str | None:
        """Drop the pending question and return it, if any; what it was to replace is there again.

        What has arrived of its answer is dropped too, unless `half_answer` was added before.
        """
        text = self.pending.content if self.pending else None
        if text is not None and not self.replaced:
            self.unanswered = text
        self.pending, self._before_pending, self.continuing = None, None, False
        self._steps.clear()
        return text

    def apply(self, branch: Branch) -> tuple[int, list[ExchangeRestored]]:
        """Show another variant, or delete one; return how many exchanges left the path's end, and those that came."""
        before = [*self.tree.path]
        (self.tree.show if branch.shown else self.tree.delete)(branch.number)
        common = sum(one == other for one, other in zip(before, self.tree.path, strict=False))
        left, came = len(before) - common, [ExchangeRestored(exchange=one) for one in self.exchanges[common:]]
        if left or came:
            self.unanswered = self._latest = None
            if self._store is not None:
                self._store.apply(branch, left)
        return left, came

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
        self.tree = ExchangeTree()
        self.pending = self._before_pending = self.unanswered = None
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
        self.tree = saved.tree
        return saved.exchanges


class SingleQuestions(Conversation):
    """A conversation that forgets each question with its answer, for decoders without learnt n-grams: each answer is
    reproducible, whatever was asked before.
    """

    def ask(self, text: str, place: int | None = None) -> Generate:
        """Return the command that asks for an answer to `text` as if nothing had been asked before."""
        self.begin_new()
        return replace(super().ask(text, place), fresh=True)

    def half_answer(self) -> None:
        """Return None: a lesson looks at whole answers, and begins again after its engine has died."""
