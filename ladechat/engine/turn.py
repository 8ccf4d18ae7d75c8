"""One answer: prompt, prefill, steps, end."""

import contextlib
import time
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import msgspec
import torch

from ladechat import protocol
from ladechat.decoder.sampler import Sampler
from ladechat.decoder.step import Limits, Step
from ladechat.engine.beginning import limit_of_answer, opening, stopped_before_it_began
from ladechat.engine.chat_format import EncodedPrompt
from ladechat.engine.detokenizer import Detokenizer
from ladechat.engine.failures import ends_the_process, unexpected
from ladechat.engine.interruptible import unless_stopped
from ladechat.engine.service import Service
from ladechat.engine.step_events import rivals_of, step_event
from ladechat.engine.stop_text import StopText
from ladechat.engine_process.thoughts import Thoughts, thinking_switch
from ladechat.model.loading.token_ids import check_ids
from ladechat.model.runners.out_of_memory import memory_is_used_up

DEFAULT_MAX_NEW_TOKENS = 512
POLICY_SECONDS = 0.5
"""How long the forecasts on a screen may be out of date."""
FRAME_SECONDS = 1 / 32
"""A frame of the app. Shorter steps are emitted several together, which takes less time."""


class Emit(Protocol):
    """Writes events to the stream."""

    def __call__(self, *events: protocol.Event) -> None:
        """Write the events in order, all at once."""


class TurnListener(Protocol):
    """Looks for commands while a turn runs."""

    def take_commands(self) -> bool:
        """Take the commands that have come, and return whether a stop is among them.

        Called between two steps and between two chunks of the prompt. Changes of settings wait for `until_due`.
        """

    def until_due(self, emit: Emit) -> float | None:
        """Before each step, apply the changes of settings that have come, emit them, and wait until the step is due.

        Returns:
            The seconds waited; None if a stop came meanwhile.
        """


def answer(service: Service, command: protocol.Generate, emit: Emit, listener: TurnListener) -> Sequence[int]:
    """Answer the last message of a conversation, or continue that answer, and emit all of it as events.

    Returns:
        The tokens of the whole answer.

    Raises:
        MessageTooLong, NothingToAnswer, UnknownToken, RefusedByTemplate: before anything was emitted.
    """
    max_new_tokens = command.max_new_tokens or DEFAULT_MAX_NEW_TOKENS
    context_length = service.loaded.context_length
    usual = service.decoders.settings
    settings = msgspec.structs.replace(usual, thinking=command.thinking or usual.thinking)
    service.chat.template.variables = thinking_switch(settings.thinking)
    fit = partial(service.chat.fit, command.messages, context_length, max_new_tokens)
    prompt = unless_stopped(fit, listener.take_commands)
    if prompt is None:
        emit(*stopped_before_it_began(command, max_new_tokens, settings))
        return ()
    check_ids(prompt.all_ids, service.loaded.embeddings, service.loaded.tokenizer)
    if command.fresh:
        service.loaded.runner.set_aside(prompt.all_ids)
    else:
        service.loaded.runner.take_back()
    seed = service.seed(command.turn) if command.seed is None else command.seed
    text = service.chat.template.format.stop
    stop = StopText(text, service.texts, prompt.answer) if text else None
    limits = Limits(limit_of_answer(len(prompt.answer), max_new_tokens), service.loaded.eos_ids, stop)
    emit(*opening(command.turn, prompt, service.loaded, settings, limits.max_new_tokens, seed))
    turn = _Turn(service, command, prompt, limits, emit, stop, list(prompt.answer))
    reason: protocol.FinishReason = "failed"
    out_of_memory = False
    try:
        turn.begin(seed)
        reason = turn.decode(listener) if turn.prefill(listener) else "stopped"
    except BaseException as error:  # whatever a model raises: emit the reason, then the end of the turn
        if ends_the_process(error):
            raise
        traceback.print_exc()
        out_of_memory = memory_is_used_up(error)
        if not out_of_memory:
            emit(unexpected(error, turn=command.turn, fatal=False))
    if out_of_memory:  # not before: an error that is being handled holds the memory of its pass
        own = command.decoder is not None
        emit(*service.save_memory(command.turn, own_decoder=own))
    emit(turn.finished(reason))
    return turn.token_ids


@dataclass
class _Turn:
    """The state of one answer. Times are in milliseconds unless named otherwise; timing plain passes is left out.

    `token_ids` are those of the whole answer; the other sums leave out the tokens that a continued answer had before.
    `emitted` are the tokens of the steps that were emitted.
    """

    service: Service
    command: protocol.Generate
    prompt: EncodedPrompt
    limits: Limits
    emit: Emit
    stop: StopText | None
    token_ids: list[int]
    sampler: Sampler = field(init=False)
    detokenizer: Detokenizer = field(init=False)
    thoughts: Thoughts | None = field(init=False)
    emitted: list[int] = field(default_factory=list)
    pending: deque[tuple[Step, float, protocol.Decision | None]] = field(default_factory=deque)
    rivals: deque[protocol.Rivals] = field(default_factory=deque)
    emitted_at: float = 0.0
    text: str = ""
    steps: int = 0
    prefill_seconds: float = 0.0
    decode_ms: float = 0.0
    compared_ms: float = 0.0
    plain_ms: float = 0.0
    policy_shown_at: float = 0.0

    @property
    def number(self) -> int:
        return self.command.turn

    def begin(self, seed: int) -> None:
        """Prepare the sampler and the detokenizer for where the answer begins, or continues."""
        self.sampler = self.service.decoders.begin(self.prompt.token_ids, seed, self.prompt.answer)
        self.detokenizer = Detokenizer(self.service.texts)
        self.thoughts = self.service.chat.thoughts(self.prompt)
        if self.prompt.answer:
            shown = self.command.messages[-1].content
            if self.thoughts is not None:  # they were shown before it
                text = self.service.texts.decode(self.prompt.answer)
                shown = text[: max(text.rfind(shown), 0)] + shown
            self.detokenizer.resume(self.prompt.answer, shown)

    def prefill(self, listener: TurnListener) -> bool:
        """Run the prompt through the model. Return False if it was stopped meanwhile."""
        started = time.perf_counter()
        stopped = listener.take_commands()
        if not stopped:
            prompt = self.prompt.all_ids
            for done in self.service.loaded.runner.prefill(prompt):
                self.emit(protocol.Prefilling(turn=self.number, done_tokens=done, total_tokens=len(prompt) - 1))
                stopped = listener.take_commands()
                if stopped:
                    break
        self.prefill_seconds = time.perf_counter() - started
        return not stopped

    def decode(self, listener: TurnListener) -> protocol.FinishReason:
        """Decode to the end of the answer, or until a stop, after which the step under way is the last."""
        self.service.cost.begin_answer(compared=self.command.fresh)
        self.service.cost.refresh()
        if (costs := self.service.decoders.pass_costs(self.number)) is not None:
            self.emit(costs)
        try:
            return self._decode(listener)
        except BaseException:  # whatever a model raises: the steps before it are emitted
            with contextlib.suppress(BaseException):  # the first error is the one that matters
                self._emit_steps()
            raise

    def _decode(self, listener: TurnListener) -> protocol.FinishReason:
        started, timed = time.perf_counter(), self.service.decoders.timed_seconds
        waited = listener.until_due(self._flush_and_emit)
        while waited is not None:
            # After a change of decoder the loop comes back: the next one continues from the text, and finds it in the
            # cache.
            decoder = self.service.decoders.chosen()
            text = [*self.prompt.token_ids, *self.token_ids]
            for step in decoder.run(text, self._limits_left(), self.sampler, len(self.token_ids)):
                now, started = time.perf_counter(), started + waited
                timing = self.service.decoders.timed_seconds - timed  # of passes, where `auto` is made in mid-answer
                decision = self.service.decoders.observe_policy()
                step_ms, started, timed = 1000 * (now - started - timing), now, timed + timing
                self.token_ids += step.tokens
                reason = self._end() or ("stopped" if listener.take_commands() else None)
                self.pending.append((step, step_ms, decision))
                if now - self.emitted_at > FRAME_SECONDS or reason is not None:
                    self.emitted_at = now
                    # A step is timed from the end of the one before, but without the time spent on measuring.
                    started += self._emit_and_measure(reason)
                if step.plain:
                    overhead = time.perf_counter() - started
                    self.service.cost.observe(step.cache_length, step.forward_seconds, overhead)
                self._emit_policy(now, ended=reason is not None)
                if reason is not None:
                    return reason
                waited = listener.until_due(self._flush_and_emit)
                if waited is None or self.service.decoders.chosen() is not decoder:
                    break
        return "stopped"

    def _emit_and_measure(self, reason: protocol.FinishReason | None) -> float:
        """Emit the steps, and time plain passes for comparison, if that is due. Return the seconds that timing took."""
        larger_ms = sum(ms for step, ms, _ in self.pending if not step.plain)  # plain passes are timed as they come
        self._emit_steps(reason)
        return self.service.cost.refresh(larger_ms / 1000) if larger_ms and reason is None else 0.0

    def _emit_policy(self, now: float, ended: bool = False) -> None:
        """Emit what the adaptive policy chooses, at most every `POLICY_SECONDS`, and at the end."""
        if ended or now - self.policy_shown_at > POLICY_SECONDS:
            choice = self.service.decoders.policy_choice(self.number)
            if choice is not None:
                self.policy_shown_at = now
                self._flush_and_emit(choice)

    def _limits_left(self) -> Limits:
        return replace(self.limits, max_new_tokens=self.limits.max_new_tokens - len(self.token_ids))

    def _end(self) -> protocol.FinishReason | None:
        """Return why the answer is at its end; None if it is not."""
        if self.token_ids[-1] in self.limits.eos_ids or (self.stop is not None and self.stop.reached):
            return "eos"
        if len(self.token_ids) == self.limits.max_new_tokens:
            return "max_new_tokens"
        if len(self.prompt.token_ids) + len(self.token_ids) == self.service.loaded.context_length:
            return "context"
        return None

    def _plain_ms(self, step: Step, step_ms: float) -> float | None:
        """Return the time of a plain step at this step's cache length, and add both to the sums for the speedup."""
        plain_ms = self.service.cost.milliseconds(step.cache_length)
        self.decode_ms += step_ms
        if plain_ms is not None:
            self.compared_ms += step_ms
            self.plain_ms += len(step.tokens) * plain_ms
        return plain_ms

    def _flush_and_emit(self, *events: protocol.Event) -> None:
        """Flush pending steps, then emit."""
        self._emit_steps()
        self.emit(*events)

    def _emit_steps(self, reason: protocol.FinishReason | None = None) -> None:
        events: list[protocol.Event] = []
        try:
            logits = [step.logits for step, _, _ in self.pending if step.logits is not None]
            runner, texts = self.service.loaded.runner, self.service.texts
            self.rivals = deque(rivals_of(torch.cat(logits), runner, texts) if logits else ())  # all at once: faster
            while self.pending:
                events.append(self._event_of(*self.pending.popleft(), reason))
        finally:  # also where one cannot be decoded: then the answer ends before it
            self.pending.clear()
            self.emit(*events)

    def _event_of(
        self, step: Step, step_ms: float, decision: protocol.Decision | None, reason: protocol.FinishReason | None
    ) -> protocol.Step:
        pieces = self.detokenizer.push(step.tokens)
        at_end, may_continue = reason is not None and not self.pending, reason in ("stopped", "max_new_tokens")
        if at_end:
            pieces[-1] += self.detokenizer.pause() if may_continue else self.detokenizer.finish()
        if self.stop is not None:
            pieces = [self.stop.shown(piece) for piece in pieces]
            if at_end and not may_continue:
                pieces[-1] += self.stop.rest()
        reasoning = 0
        if self.thoughts is not None:
            names = self.service.texts.names(step.tokens)  # a special token has no text, but may be part of a mark
            marks = "".join(self.thoughts.marks)
            said = (piece or name * (name in marks) for piece, name in zip(pieces, names, strict=True))
            pieces, reasoning = self.thoughts.divide(said)
            pieces[-1] += self.thoughts.rest() if at_end and not may_continue else ""
        event = step_event(
            step,
            self.service.texts,
            turn=self.number,
            index=self.command.first_step + self.steps,
            pieces=pieces,
            reasoning=reasoning,
            rivals=[] if step.logits is None else [self.rivals.popleft() for _ in step.tokens],
            step_ms=step_ms,
            plain_ms=self._plain_ms(step, step_ms),
            decision=decision,
        )
        self.steps += 1
        self.emitted += step.tokens
        self.text += "".join(pieces[reasoning:])
        return event

    def finished(self, reason: protocol.FinishReason) -> protocol.TurnFinished:
        """Return the closing event, with the estimated speedup if it is credible."""
        speedup = self.plain_ms / self.compared_ms if self.compared_ms and self.steps else None
        return protocol.TurnFinished(
            turn=self.number,
            reason=reason,
            text=self.text,
            token_ids=self.emitted,
            steps=self.steps,
            prefill_seconds=self.prefill_seconds,
            decode_seconds=self.decode_ms / 1000,
            estimated_speedup=speedup and protocol.credible_speedup(speedup, len(self.emitted) / self.steps),
            memory=self.service.memory(),
        )
