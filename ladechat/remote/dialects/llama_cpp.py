"""llama.cpp's server: the chunks of one pass have the same timings, whose count of tokens includes all of the pass.

A chunk is one token. With the first chunk of a pass it is known how many more belong to it, so no pass waits for the
next one.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from ladechat.remote.dialects.openai import ChatReader, OpenAI
from ladechat.remote.json_values import at, count_at, counts_at, number_at
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
            "return_tokens": True,
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
        self._pass: list[tuple[str, str, int]] = []
        """The chunks of the pass that is being read: text, thought, token."""
        self._wanted = self._known = self._drafted = 0
        """The tokens of that pass; of all passes so far; and their drafts."""
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
        tokens = count_at(event, "timings", "predicted_n")
        if tokens is not None and tokens > self._known:
            yield from self.rest()
            self._wanted, self._known = tokens - self._known, tokens
            drafted = count_at(event, "timings", "draft_n")
            self._drafted_now = None if drafted is None else max(0, drafted - self._drafted)
            self._drafted = drafted or 0
        if text or thought:
            token_id = next(iter(counts_at(choice, "tokens") or counts_at(event, "tokens")), 0)
            self._pass.append((text, thought, token_id))
        if self._pass and len(self._pass) >= self._wanted:
            yield from self.rest()

    def rest(self) -> Iterator[Tokens]:
        """Yield the pass that is being read. Its chunks may be fewer than its tokens: a character may need several."""
        if not self._pass:
            return
        chunks, self._pass = self._pass, []
        missing = max(0, self._wanted - len(chunks))
        thoughts = sum(1 for _, thought, _ in chunks if thought)
        pieces = [*[""] * missing, *(thought or text for text, thought, _ in chunks)]
        reasoning = thoughts + missing if thoughts else 0
        ids = [*[0] * missing, *(token_id for _, _, token_id in chunks)]
        yield Tokens(pieces, ids, [0.0] * len(ids), reasoning, drafted=self._drafted_now)

    def end(self) -> Iterator[Report]:
        """Yield the end, with the passes: each gives one token and those of its drafts that it accepts."""
        if self.figures.tokens is not None and self.figures.accepted is not None:
            self.add_figures(passes=max(0, self.figures.tokens - self.figures.accepted))
        yield from super().end()
