"""The conversation. It lives in the UI: each `generate` carries all of it to the engine."""

from ladechat.protocol import Generate, Message, TurnFinished


class Conversation:
    """The messages so far, and the question that waits for its answer.

    Args:
        system: how the model should behave; the first message.
        max_new_tokens: the longest answer; None leaves it to the engine.
    """

    def __init__(self, system: str | None = None, max_new_tokens: int | None = None) -> None:
        self.messages: list[Message] = [Message(role="system", content=system)] if system else []
        self.pending: Message | None = None
        self._max_new_tokens = max_new_tokens
        self._turn = 0

    @property
    def turn(self) -> int:
        """The number of the latest turn, from 1; 0 before the first."""
        return self._turn

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

    def answered(self, event: TurnFinished) -> None:
        """Add an answer, also one that was stopped. A question without an answer stays out of the conversation."""
        answer_of_this = event.turn == self._turn and event.reason != "failed"
        if self.pending is not None and answer_of_this and event.token_ids:
            answer = Message(role="assistant", content=event.text, token_ids=event.token_ids)
            self.messages += [self.pending, answer]
            self.pending = None

    def give_up(self) -> str | None:
        """Take back the question that waits for its answer; None if there is none."""
        text = self.pending.content if self.pending else None
        self.pending = None
        return text

    def restart(self) -> None:
        """Begin a new conversation. The system message stays."""
        self.messages = [message for message in self.messages if message.role == "system"]
        self.pending = None
