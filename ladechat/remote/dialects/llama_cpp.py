"""llama.cpp's server: a chunk is a token, and those of one pass have the same `predicted_ms`.

With the first chunk of a pass the count of accepted drafts rises by the number of those that follow, so no pass waits
for the next one.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from ladechat.remote.dialects.openai import ChatReader, OpenAI
from ladechat.remote.json_values import at, count_at, number_at
from ladechat.remote.reports import Asked, Progress, Prompt, Report, Tokens

SEEDS = 2**32 - 1
"""Its seeds have 32 bits, and the last of them stands for none."""


class LlamaCpp(OpenAI):
    """A llama.cpp server."""

    passes: ClassVar[bool] = True
    token_ids: ClassVar[bool] = False
    logprobs: ClassVar[bool] = False
    continues: ClassVar[bool] = True  # the last message is an answer: it goes on

    def more(self, asked: Asked) -> dict[str, Any]:
        """Return llama.cpp's own fields. All of sampling is said: its defaults are not those of others."""
        settings = asked.settings
        return {
            "top_k": settings.top_k,
            "min_p": settings.min_p,
            "repeat_penalty": settings.repetition_penalty,
            "timings_per_token": True,
            "return_progress": True,
            "cache_prompt": True,
            **({"seed": asked.seed % SEEDS} if settings.temperature else {}),
        }

    def reader(self, asked: Asked) -> "LlamaCppReader":
        """Return the reader of its answer."""
        return LlamaCppReader(asked)


class LlamaCppReader(ChatReader):
    """Joins the chunks of a pass."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._pass: list[tuple[str, str]] = []
        """The chunks of the pass that is being read: text and thought."""
        self._time: float | None = None
        """When that pass ended, by the server's clock."""
        self._wanted = 0
        """The number of tokens of that pass."""
        self._accepted = self._drafted = self._tokens = 0
        """The numbers of accepted drafts, of drafts, and of tokens, each summed over all passes so far."""
        self._drafted_now: int | None = None

    def prompt(self, event: Any) -> Prompt:
        """Return how much of the prompt was read, and how much of it was cached."""
        cached = count_at(event, "timings", "cache_n") or count_at(event, "prompt_progress", "cache") or 0
        read = count_at(event, "timings", "prompt_n")
        total = count_at(event, "prompt_progress", "total") or (cached + read if read is not None else None)
        return Prompt(tokens=total, cached_tokens=cached)

    def read(self, event: Any) -> Iterator[Report]:
        """Yield what a chunk tells."""
        yield from super().read(event)
        total = count_at(event, "prompt_progress", "total")
        if total is not None:
            yield Progress(min(count_at(event, "prompt_progress", "processed") or 0, total), total)
        timings = at(event, "timings")
        if timings is not None:
            self.add_figures(
                tokens=count_at(timings, "predicted_n"),
                drafted=count_at(timings, "draft_n"),
                accepted=count_at(timings, "draft_n_accepted"),
                tokens_per_second=number_at(timings, "predicted_per_second"),
            )

    def steps(self, event: Any, choice: Any, text: str, thought: str) -> Iterator[Report]:
        """Yield a pass once its last chunk has come."""
        time = number_at(event, "timings", "predicted_ms")
        if time is None or not (thought or isinstance(at(choice, "delta", "content"), str)):
            return
        if time != self._time:
            yield from self.rest()
            self._begin(time, event)
        self._pass.append((text, thought))
        if len(self._pass) >= self._wanted:
            yield from self.rest()

    def _begin(self, time: float, event: Any) -> None:
        accepted = count_at(event, "timings", "draft_n_accepted") or 0
        drafted = count_at(event, "timings", "draft_n")
        self._time, self._wanted = time, 1 + max(0, accepted - self._accepted)
        self._drafted_now = None if drafted is None else max(0, drafted - self._drafted)
        self._accepted, self._drafted = accepted, drafted or 0

    def rest(self) -> Iterator[Tokens]:
        """Yield the pass that is being read. Its chunks may be fewer than its tokens, where text is held back."""
        if self._pass:
            chunks, self._pass = self._pass, []
            thoughts = sum(1 for _, thought in chunks if thought)
            missing = [("", "")] * (self._wanted - len(chunks))
            yield self._step([*missing, *chunks], thoughts + len(missing) if thoughts else 0)

    def _step(self, chunks: list[tuple[str, str]], reasoning: int) -> Tokens:
        self._tokens += len(chunks)
        pieces = [thought or text for text, thought in chunks]
        nothing = [0] * len(chunks)
        return Tokens(pieces, nothing, [0.0] * len(chunks), reasoning, drafted=self._drafted_now)

    def end(self) -> Iterator[Report]:
        """Yield the end, with the passes: each gives one token and those of its drafts that it accepts. The mark at the
        end of an answer is a token without a chunk.
        """
        yield from self.rest()
        if self.figures.tokens is not None:
            self.add_figures(passes=max(0, self.figures.tokens - (self.figures.accepted or 0)))
            if self._finish == "stop" and self.figures.tokens == self._tokens + 1:
                self._drafted_now = None
                yield self._step([("", "")], 0)
        yield from super().end()
