"""A checkpoint that answers questions as in the app: its loader, its prompts, its lookahead decoder; always greedy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ladechat.decoder.step import Limits
from ladechat.engine.chat_format import ChatFormat
from ladechat.model.load import load
from ladechat.protocol import Message
from ladechat.registry import lookahead
from tools.demo_model.evaluation.rules import LIMIT_TOKENS

SETTINGS = (5, 3, 5)
"""W, N and G."""


@dataclass(frozen=True)
class Reply:
    """One answer: its text, whether it ended by itself, and what it took."""

    text: str
    ended: bool
    tokens: int
    steps: int


class Speaker:
    """A checkpoint in float32 on the CPU. Its own answers stay in view, token for token."""

    def __init__(self, folder: Path) -> None:
        loaded = load(folder, folder.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
        self._runner, self._tokenizer, self._ends = loaded.runner, loaded.tokenizer, loaded.eos_ids
        self._context = loaded.context_length
        self._format = ChatFormat(loaded.tokenizer)

    def converse(self, turns: Sequence[str]) -> Iterator[Reply]:
        """The answers to the turns of one conversation, each with those before it in view."""
        messages: list[Message] = []
        for turn in turns:
            messages.append(Message(role="user", content=turn))
            reply, answer = self._answer(self._format.fit(messages, self._context, LIMIT_TOKENS).token_ids)
            messages.append(answer)
            yield reply

    def _answer(self, prompt: list[int]) -> tuple[Reply, Message]:
        """An answer after a prompt, the pool of n-grams empty at first."""
        for _ in self._runner.prefill(prompt):
            pass
        limits = Limits(min(LIMIT_TOKENS, self._context - len(prompt)), self._ends)
        steps = list(lookahead(self._runner, *SETTINGS).run(prompt, limits))
        token_ids = [token for step in steps for token in step.tokens]
        text = self._tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        reply = Reply(text.strip(), token_ids[-1] in self._ends, len(token_ids), len(steps))
        return reply, Message(role="assistant", content=text, token_ids=token_ids)
