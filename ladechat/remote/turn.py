"""The events of one answer, made of what a server tells."""

from collections.abc import Iterator

from ladechat import protocol
from ladechat.protocol import FinishReason, ServerFigures
from ladechat.remote.answer import OtherModel, Trimmed
from ladechat.remote.faults import ServerFault
from ladechat.remote.reports import Asked, Ended, Progress, Prompt, Report, Tokens

DRAFTED = "server"
"""The origin of a token that came with others: the server has drafted it, nobody knows how."""
MINE = "model"

Happened = Report | Trimmed | OtherModel | ServerFault
"""What a server tells of an answer, or why it tells no more."""


class Turn:
    """Counts what a server tells of an answer, and makes events of it. Times are in seconds, on one clock.

    Attributes:
        text: the answer so far.
        reason: why it ended; None as long as it has not.
    """

    def __init__(self, command: protocol.Generate, asked: Asked, context_length: int, asked_at: float) -> None:
        self.text = ""
        self.reason: FinishReason | None = None
        self._command = command
        self._asked = asked
        self._context_length = context_length
        self._asked_at = self._latest = asked_at
        self._messages = list(asked.messages)
        self._prompt_tokens = 0
        self._began = False
        self._steps = 0
        self._token_ids: list[int] = []
        self._prefill_seconds = self._decode_seconds = 0.0
        self._untimed_tokens = 0

    def events(self, reported: Happened, at: float) -> Iterator[protocol.Event]:
        """Yield the events of what happened at a time."""
        match reported:
            case ServerFault():
                yield from self._failed(reported)
            case Trimmed():
                yield self._trimmed(reported)
            case OtherModel():
                message = f"The server answers as {reported.name!r}, and {self._asked.model!r} was asked."
                hint = "/model lists what it has; it may have been started anew."
                yield protocol.Failed(code="model_not_found", message=message, hint=hint)
            case Prompt():
                self._prompt_tokens = reported.tokens or len(reported.token_ids)
                yield self._started(reported)
            case Progress():
                done, total = reported.done_tokens, reported.total_tokens
                yield protocol.Prefilling(turn=self._command.turn, done_tokens=done, total_tokens=total)
            case Tokens():
                yield self._step(reported, at)
            case Ended():
                yield self._finished(reported.reason, reported.figures, reported.pass_tokens)

    def stopped(self) -> Iterator[protocol.Event]:
        """Yield the end of an answer that was stopped here; what has come of it stays."""
        if not self._began:
            yield self._started(Prompt())
        yield self._finished("stopped")

    def _failed(self, fault: ServerFault) -> Iterator[protocol.Event]:
        """Yield why there is no more of the answer. What has come of it stays, as if it had been stopped."""
        yield fault.event(self._command.turn)
        if self._began:
            yield self._finished("stopped" if self._token_ids else "failed")
        self.reason = "failed"

    def _trimmed(self, reported: Trimmed) -> protocol.Event:
        self._messages = list(reported.messages)
        return protocol.HistoryTrimmed(
            turn=self._command.turn,
            dropped_turns=reported.dropped_messages // 2,
            dropped_messages=reported.dropped_messages,
            tokens_before=0,
            tokens_after=0,
            context_length=self._context_length,
        )

    def _started(self, prompt: Prompt) -> protocol.Event:
        self._began = True
        return protocol.TurnStarted(
            turn=self._command.turn,
            messages=self._messages,
            prompt_ids=list(prompt.token_ids),
            cached_tokens=min(prompt.cached_tokens, len(prompt.token_ids)),
            max_new_tokens=self._asked.most_tokens,
            settings=self._asked.settings,
            seed=self._asked.seed,
        )

    def _step(self, tokens: Tokens, at: float) -> protocol.Event:
        """Return the event of a step. The first one has no time of its own: the prompt's pass gave its first token."""
        seconds = max(0.0, at - self._latest)
        if self._steps:
            self._decode_seconds += seconds
        else:
            self._prefill_seconds, seconds = max(0.0, at - self._asked_at), 0.0
            self._untimed_tokens = len(tokens.token_ids)
        self._latest = at
        count = len(tokens.token_ids)
        event = protocol.Step(
            turn=self._command.turn,
            index=self._command.first_step + self._steps,
            token_ids=tokens.token_ids,
            pieces=tokens.pieces,
            logprobs=tokens.logprobs,
            origins=[*[DRAFTED] * (count - 1), MINE],
            timing=protocol.Timing(
                step_ms=1000 * seconds,
                forward_ms=1000 * seconds,
                slots=count,
                cache_length=self._prompt_tokens + len(self._token_ids),
            ),
            reasoning=tokens.reasoning,
            passes=max(1, tokens.passes),
            drafted=tokens.drafted,
            rivals=tokens.rivals if len(tokens.rivals) == count and any(one.pieces for one in tokens.rivals) else [],
        )
        self._steps += 1
        self._token_ids += tokens.token_ids
        self.text += "".join(tokens.pieces[tokens.reasoning :])
        return event

    def _finished(
        self, reason: FinishReason, figures: ServerFigures | None = None, pass_tokens: list[int] | None = None
    ) -> protocol.Event:
        self.reason = reason
        passes = pass_tokens if pass_tokens and sum(pass_tokens) == len(self._token_ids) else []
        return protocol.TurnFinished(
            turn=self._command.turn,
            reason=reason,
            text=self.text,
            token_ids=self._token_ids,
            steps=len(passes) or self._steps,
            prefill_seconds=self._prefill_seconds,
            decode_seconds=self._decode_seconds,
            server=figures,
            pass_tokens=passes,
            untimed_tokens=self._untimed_tokens,
        )
