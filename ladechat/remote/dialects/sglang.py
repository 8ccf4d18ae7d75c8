"""SGLang: its own `/generate` counts the passes that have checked drafts, and tells the tokens.

Written by its documentation and its source of autumn 2026; a GPU is needed to run it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from ladechat.engine_process.thoughts import TOKENS_OF_A_MARK
from ladechat.protocol import ServerFigures
from ladechat.protocol.values import RIVALS
from ladechat.remote.connection import Connection
from ladechat.remote.dialects.dialect import Request, reason_of
from ladechat.remote.faults import NotThere, ServerFault
from ladechat.remote.json_values import at, count_at, counts_at, list_at, logprob_at, text_at
from ladechat.remote.reports import Asked, Prompt, Report, rivals_of, step_of, with_known
from ladechat.remote.thoughts import OPEN

SEEDS = 2**32


class SGLang:
    """An SGLang server."""

    passes: ClassVar[bool] = True
    token_ids: ClassVar[bool] = True
    logprobs: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    async def request(self, connection: Connection, asked: Asked) -> Request:
        """Return the request for an answer, after the server has made the prompt's tokens of the conversation."""
        question = {"model": asked.model, "messages": asked.chat(), "continue_final_message": asked.goes_on}
        question |= asked.of_template
        prompt = counts_at(await connection.fetch(f"{connection.address.root}/tokenize", question), "tokens")
        if not prompt:
            hint = "SGLang of this autumn does; update the server."
            raise ServerFault(f"{connection.address.host} does not tell the tokens of a conversation.", hint)
        settings = asked.settings
        sampling = {
            "max_new_tokens": asked.most_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k or -1,
            "min_p": settings.min_p,
            "repetition_penalty": settings.repetition_penalty,
            **({"sampling_seed": asked.seed % SEEDS} if settings.temperature else {}),
        }
        body = {"input_ids": prompt, "sampling_params": sampling, "stream": True, "return_logprob": True}
        body |= {"top_logprobs_num": RIVALS, "return_text_in_logprobs": True} if asked.rivals else {}
        thinks = not asked.goes_on and await self._opens_thoughts(connection, asked.model, prompt[-TOKENS_OF_A_MARK:])
        return Request(f"{connection.address.root}/generate", body, thinks)

    async def _opens_thoughts(self, connection: Connection, model: str, end: list[int]) -> bool:
        """Return whether a prompt with this end has the first mark of the thoughts, as some chat templates write it."""
        question = {"model": model, "tokens": end, "skip_special_tokens": False}
        try:
            answer = await connection.fetch(f"{connection.address.root}/detokenize", question)
        except NotThere:
            return False
        return text_at(answer, "text").rstrip().endswith(OPEN)

    def reader(self, asked: Asked) -> "GenerateReader":
        """Return the reader of its answer."""
        return GenerateReader(asked)


class GenerateReader:
    """Reads the events of `/generate`. Text, tokens and log-probabilities are those of the whole answer in each event,
    or only what is new, as the server was started; the count of tokens says which.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._figures = ServerFigures()
        self._tokens = self._characters = 0
        """How long the answer is so far, in tokens and in characters."""
        self._checked = 0
        """How many passes have verified drafts so far."""
        self._begun = False
        self._finish = ""

    def read(self, event: Any) -> Iterator[Report]:
        """Yield the pass, or the passes, since the event before."""
        meta = at(event, "meta_info")
        if not self._begun:
            self._begun = True
            yield Prompt(tokens=count_at(meta, "prompt_tokens"), cached_tokens=count_at(meta, "cached_tokens") or 0)
        tokens, checked = count_at(meta, "completion_tokens") or 0, count_at(meta, "spec_verify_ct")
        new = tokens - self._tokens
        if new > 0:
            yield self._step(event, meta, new, checked)
            self._tokens = tokens
        self._checked = checked or self._checked
        self._finish = text_at(meta, "finish_reason", "type") or text_at(meta, "finish_reason") or self._finish
        self._take_figures(meta, tokens, checked)

    def _step(self, event: Any, meta: Any, new: int, checked: int | None) -> Report:
        whole_ids, text = counts_at(event, "output_ids"), text_at(event, "text")
        cumulative = len(whole_ids) >= self._tokens + new and self._tokens > 0
        if cumulative or not self._tokens:
            text, self._characters = text[self._characters :], len(text)
        reported = list_at(meta, "output_token_logprobs")[-new:]
        logprobs = [logprob_at(each, 0) for each in reported]
        texts = [text_at(each, 2) for each in reported]
        step = step_of(text, whole_ids[-new:] if len(whole_ids) >= new else [0] * new, "", texts, logprobs)
        likely = list_at(meta, "output_top_logprobs")[-new:]
        step = replace(step, rivals=[rivals_of(list_at(each), 2, 0) for each in likely])
        if checked is None:  # no speculation: a pass for each token
            return replace(step, passes=new)
        return replace(step, passes=max(1, checked - self._checked + (self._tokens == 0 and checked > 0)))

    def _take_figures(self, meta: Any, tokens: int, checked: int | None) -> None:
        self._figures = with_known(
            self._figures,
            prompt_tokens=count_at(meta, "prompt_tokens"),
            tokens=tokens or None,
            passes=None if checked is None else checked + 1,
            accepted=count_at(meta, "spec_accept_token_num"),
            drafted=count_at(meta, "spec_draft_token_num"),
        )

    def end(self) -> Iterator[Report]:
        """Yield the end, if the stream has one."""
        if self._finish:
            finish = "length" if self._finish == "length" else "stop"
            yield replace(reason_of(finish, self._asked, self._tokens), figures=self._figures)
