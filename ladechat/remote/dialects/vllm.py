"""vLLM: a chunk has the tokens of a pass, and the end tells how many drafts each pass has accepted.

Chunks hold several passes where the reader is slow, or `--stream-interval` is above 1; the end mends that. The accepted
drafts come with `--per-request-spec-decode-metrics`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ladechat.protocol.values import RIVALS
from ladechat.remote.dialects.openai import ChatReader, OpenAI
from ladechat.remote.json_values import at, count_at, counts_at, list_at, logprob_at, number_at, text_at
from ladechat.remote.reports import Asked, Ended, Prompt, Report, rivals_of, step_of


class VLLM(OpenAI):
    """A vLLM server."""

    passes: ClassVar[bool] = True
    token_ids: ClassVar[bool] = True
    logprobs: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    def more(self, asked: Asked) -> dict[str, Any]:
        """Return vLLM's own fields. All of sampling is said, since the model's own defaults hold otherwise."""
        settings = asked.settings
        return {
            "top_k": settings.top_k or -1,
            "min_p": settings.min_p,
            "repetition_penalty": settings.repetition_penalty,
            "return_token_ids": True,
            "logprobs": True,
            **({"top_logprobs": RIVALS} if asked.rivals else {}),
            **({"continue_final_message": True, "add_generation_prompt": False} if asked.goes_on else {}),
        }

    def reader(self, asked: Asked) -> "VLLMReader":
        """Return the reader of its answer."""
        return VLLMReader(asked)


class VLLMReader(ChatReader):
    """Reads a pass from each chunk with tokens."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._chunks: list[int] = []
        self._before = ""
        """Text that came without a token of its own: the next token's."""
        self._accepted: list[int] | None = None

    def prompt(self, event: Any) -> Prompt:
        """Return the prompt's tokens."""
        token_ids = counts_at(event, "prompt_token_ids")
        return Prompt(token_ids, len(token_ids) or None)

    def read(self, event: Any) -> Iterator[Report]:
        """Yield what a chunk tells; the last one has the figures of speculative decoding."""
        yield from super().read(event)
        self.add_figures(tokens_per_second=number_at(event, "metrics", "tokens_per_second"))
        speculative = at(event, "metrics", "speculative_decoding")
        if speculative is None:
            return
        self._accepted = counts_at(speculative, "per_step_accepted") or None
        self.add_figures(
            drafted=count_at(speculative, "num_draft_tokens"),
            accepted=count_at(speculative, "num_accepted_draft_tokens"),
        )

    def steps(self, event: Any, choice: Any, text: str, thought: str) -> Iterator[Report]:
        """Yield the pass of a chunk."""
        reported = list_at(choice, "logprobs", "content")
        token_ids = counts_at(choice, "token_ids") or [0] * len(reported)
        if not token_ids:
            self._before += text
            return
        texts, logprobs = [text_at(one, "token") for one in reported], [logprob_at(one, "logprob") for one in reported]
        rivals = [rivals_of(list_at(one, "top_logprobs"), "token", "logprob") for one in reported]
        yield replace(step_of(self._before + text, token_ids, thought, texts, logprobs), rivals=rivals)
        self._before = ""
        self._chunks.append(len(token_ids))

    def ended(self, finish: str) -> Ended:
        """Return the end, with the passes of the chunks that held several."""
        passes = pass_tokens(self._chunks, self._accepted) if self._accepted is not None else None
        if passes is not None:
            self.add_figures(passes=len(passes))
        mended = passes if passes is not None and passes != self._chunks else []
        return replace(super().ended(finish), pass_tokens=mended)


def pass_tokens(chunks: Sequence[int], accepted: Sequence[int]) -> list[int] | None:
    """Return the tokens of each pass, from those of each chunk, and from the accepted drafts of each pass that had
    some, as the server tells them at the end; None if they do not fit each other.

    A pass with drafts gives those that it accepts and one more; a pass without gives one, as does the prompt's. A chunk
    is one pass, or several that went on together: chunks of 1, 3 and 3 tokens after which the server tells 2, 0 and 1
    accepted drafts were passes of 1, 3, 1 and 2 tokens.
    """
    passes: list[int] = []
    drafted = 0
    for place, tokens in enumerate(chunks):
        left = tokens
        if not passes:
            passes.append(1)
            left -= 1
        while left and drafted < len(accepted) and accepted[drafted] + 1 <= left:
            passes.append(accepted[drafted] + 1)
            left -= passes[-1]
            drafted += 1
        if left > 1 and place == len(chunks) - 1 and drafted == len(accepted) - 1:
            passes.append(left)  # the last pass is cut where the answer ends
            left, drafted = 0, drafted + 1
        passes += [1] * left
    return passes if drafted == len(accepted) else None
