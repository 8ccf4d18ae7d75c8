"""The conversation. It lives in the UI: each `generate` carries all of it to the engine."""

from msgspec.structs import replace

from ladechat.protocol import Exchange, Generate, Message, TurnFinished
from ladechat.session.conversation_file import Kept
from ladechat.session.conversation_store import ConversationStore


class Conversation:
    """The messages so far, and the question that waits for its answer.

    Args:
        system: how the model should behave; the first message.
        max_new_tokens: the longest answer; None leaves it to the engine.
        model: the name of the model that answers.
        store: keeps what is answered; None keeps nothing.
    """

    def __init__(
        self,
        system: str | None = None,
        max_new_tokens: int | None = None,
        model: str = "",
        store: ConversationStore | None = None,
    ) -> None:
        self.messages: list[Message] = []
        self.pending: Message | None = None
        self._max_new_tokens = max_new_tokens
        self._model = model
        self._store = store
        self._turn = 0
        if system:
            self.instruct(system)

    @property
    def model(self) -> str:
        """The model that answers, as it was asked for."""
        return self._model

    @property
    def system(self) -> str:
        """How the model should behave; "" where nothing is said about that."""
        return self.messages[0].content if self.messages and self.messages[0].role == "system" else ""

    @property
    def turn(self) -> int:
        """The number of the latest turn, from 1; 0 before the first."""
        return self._turn

    @property
    def begun(self) -> bool:
        """Has a question been answered?"""
        return bool(self.messages) and self.messages[-1].role == "assistant"

    def ask(self, text: str) -> Generate:
        """The command that has `text` answered."""
        self._turn += 1
        self.pending = Message(role="user", content=text)
        return Generate(turn=self._turn, messages=[*self.messages, self.pending], max_new_tokens=self._max_new_tokens)

    def again(self, text: str) -> Generate | None:
        """The command that would have `text` answered, or without a text the last question again; None if there is
        neither. It changes nothing here.
        """
        last = max((place for place, one in enumerate(self.messages) if one.role == "user"), default=-1)
        messages = self.messages[: last + 1]
        if text:
            messages = [*self.messages, Message(role="user", content=text)]
        return Generate(turn=0, messages=messages, max_new_tokens=self._max_new_tokens) if messages else None

    def answered(self, event: TurnFinished, decoder: str) -> None:
        """Add an answer, also one that was stopped, by the decoder of this name. A question without an answer stays out
        of the conversation.
        """
        answer_of_this = event.turn == self._turn and event.reason != "failed"
        if self.pending is not None and answer_of_this and event.token_ids:
            exchange = Exchange(
                question=self.pending.content,
                answer=event.text,
                token_ids=event.token_ids,
                model=self._model,
                decoder=decoder,
            )
            self.messages += self._messages_of(exchange)
            self.pending = None
            if self._store is not None:
                self._store.add(exchange)

    def give_up(self) -> str | None:
        """Take back the question that waits for its answer; None if there is none."""
        text = self.pending.content if self.pending else None
        self.pending = None
        return text

    def instruct(self, system: str) -> None:
        """Say how the model should behave from the next question on; with "", say nothing about it."""
        self._put_first(system)
        if self._store is not None:
            self._store.instruct(system)

    def _put_first(self, system: str) -> None:
        said = [message for message in self.messages if message.role != "system"]
        self.messages = [Message(role="system", content=system), *said] if system else said

    def use_model(self, model: str) -> None:
        """Have another model answer. The tokens of the answers that are there mean nothing to it."""
        if model != self._model:
            self._model = model
            self.messages = [replace(message, token_ids=None) for message in self.messages]

    def restart(self) -> None:
        """Begin a new conversation. The system message stays."""
        self.messages = [message for message in self.messages if message.role == "system"]
        self.pending = None
        if self._store is not None:
            self._store.begin_new()
            if self.system:
                self._store.instruct(self.system)

    def open(self, kept: Kept) -> list[Exchange]:
        """Go on with a kept conversation, in the place of this one, with its system message if it was kept with one.

        Returns:
            What it holds by now.
        """
        self.restart()
        if self._store is not None:
            kept = self._store.open(kept)
        if kept.system is not None:
            self._put_first(kept.system)
        elif self.system and self._store is not None:
            self._store.instruct(self.system)
        for exchange in kept.exchanges:
            self.messages += self._messages_of(exchange)
        return kept.exchanges

    def remove_last(self) -> str | None:
        """Take the last question that was answered out, with its answer; the question, None if there is none."""
        if self.pending is not None or not self.begun:
            return None
        question, _ = self.messages[-2:]
        del self.messages[-2:]
        if self._store is not None:
            self._store.remove_last()
        return question.content

    def _messages_of(self, exchange: Exchange) -> list[Message]:
        """An exchange as it is sent: with the tokens of the answer, if they are this model's."""
        token_ids = exchange.token_ids if exchange.model == self._model else None
        return [
            Message(role="user", content=exchange.question),
            Message(role="assistant", content=exchange.answer, token_ids=token_ids),
        ]
