"""Any server with the OpenAI chat API: its stream has chunks of text, and does not tell the passes behind them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from ladechat.protocol import ServerFigures, Settings
from ladechat.remote.connection import Connection
from ladechat.remote.dialects.dialect import Request, reason_of
from ladechat.remote.json_values import at, count_at, text_at
from ladechat.remote.reports import Asked, Ended, Prompt, Report, Tokens, step_of, with_known

CHAT = "/chat/completions"


class OpenAI:
    """A server of which nothing else is known."""

    passes: ClassVar[bool] = False
    token_ids: ClassVar[bool] = False
    logprobs: ClassVar[bool] = False
    continues: ClassVar[bool] = False

    async def request(self, connection: Connection, asked: Asked) -> Request:
        """Return the request for a chat answer; see `Dialect`."""
        body = {
            "model": asked.model,
            "messages": asked.chat(),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": asked.most_tokens,
            "temperature": asked.settings.temperature,
            "top_p": asked.settings.top_p,
            **({"seed": asked.seed} if asked.settings.temperature else {}),
            **asked.of_template,
            **self.more(asked),
        }
        return Request(connection.address.api + CHAT, body)

    def more(self, asked: Asked) -> dict[str, Any]:
        """Return the fields that only this kind of server takes: here those without which an answer would be sampled
        otherwise than the user wants. A server that has none of them refuses them.
        """
        usual, settings = Settings(), asked.settings
        names = ("top_k", "min_p", "repetition_penalty")
        return {name: getattr(settings, name) for name in names if getattr(settings, name) != getattr(usual, name)}

    def reader(self, asked: Asked) -> "ChatReader":
        """Return the reader of its answer."""
        return ChatReader(asked)


class ChatReader:
    """Reads the chunks of a chat answer. A subclass knows which of them are passes.

    Attributes:
        figures: what the server has reported of the whole answer so far.
    """

    def __init__(self, asked: Asked) -> None:
        self.figures = ServerFigures()
        self._asked = asked
        self._finish = ""
        self._begun = False

    def read(self, event: Any) -> Iterator[Report]:
        """Yield what a chunk tells."""
        if not self._begun:
            self._begun = True
            yield self.prompt(event)
        choice = at(event, "choices", 0)
        delta = at(choice, "delta")
        thought = text_at(delta, "reasoning_content") or text_at(delta, "reasoning")
        yield from self.steps(event, choice, text_at(delta, "content"), thought)
        self._finish = text_at(choice, "finish_reason") or self._finish
        if (usage := at(event, "usage")) is not None:
            self.add_figures(
                prompt_tokens=count_at(usage, "prompt_tokens"), tokens=count_at(usage, "completion_tokens")
            )

    def add_figures(self, **known: float | int | None) -> None:
        """Add figures of the server, those that are not None."""
        self.figures = with_known(self.figures, **known)

    def prompt(self, event: Any) -> Prompt:
        """Return what the first chunk tells of the prompt."""
        return Prompt()

    def steps(self, event: Any, choice: Any, text: str, thought: str) -> Iterator[Report]:
        """Yield the steps that are known with a chunk."""
        if text or thought:
            yield step_of(text, [0], thought)

    def rest(self) -> Iterator[Tokens]:
        """Yield the steps that no later chunk can add to any more."""
        yield from ()

    def end(self) -> Iterator[Report]:
        """Yield the last steps, and the end if the stream has one."""
        yield from self.rest()
        if self._finish:
            yield replace(self.ended(self._finish), figures=self.figures)

    def ended(self, finish: str) -> Ended:
        """Return the end of the answer."""
        return reason_of(finish, self._asked, self.figures.tokens)
