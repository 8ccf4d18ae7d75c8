"""One answer: prompt, prefill, steps, end."""

import contextlib
import secrets
import time
import traceback
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Protocol

from ladechat import protocol
from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Step
from ladechat.engine.conversation import ChatFormat, Prompt
from ladechat.engine.decoders import Decoders, smaller
from ladechat.engine.detokenizer import Detokenizer, TokenTexts
from ladechat.engine.failures import passes_made_smaller, unexpected
from ladechat.engine.step_events import step_event
from ladechat.model.cost import PlainPassCost
from ladechat.model.cost_file import costs_file
from ladechat.model.loading import LoadedModel
from ladechat.model.memory import memory_is_used_up
from ladechat.model.memory_use import memory_use
from ladechat.protocol import Settings

DEFAULT_MAX_NEW_TOKENS = 512
TUNING_SECONDS = 0.5
"""How long what `auto` expects may be out of date on a screen."""
TOLD_SECONDS = 1 / 30
"""Steps that take less than this, a frame of the app, are told several together: one by one that takes longer, for
after a pass nothing of it is in the processor's cache."""
SEED_BITS = 32
SEEDS = 2**53
"""Numbers from here on are not told exactly in every language's JSON."""


class Emit(Protocol):
    """Says events."""

    def __call__(self, *events: protocol.Event) -> None:
        """One behind the other, and all at once."""
        ...


class Listener(Protocol):
    """Looks for commands while a turn runs."""

    def stop_wanted(self) -> bool:
        """Has a stop come? Asked between two steps and between two chunks of the prompt."""
        ...

    def apply_changes(self, emit: Emit) -> None:
        """Carry out the changes of settings that have come, and say so. Called between two steps."""
        ...


@dataclass(frozen=True)
class Service:
    """What every turn works with; it lives as long as the model does."""

    loaded: LoadedModel
    decoders: Decoders
    chat: ChatFormat
    texts: TokenTexts
    cost: PlainPassCost

    @classmethod
    def of(cls, loaded: LoadedModel, settings: Settings, passes: str = "") -> "Service":
        """The service of a model that has just been loaded, and whose passes run in one of the ways that there are."""
        costs = costs_file(loaded.runner.model, loaded.device, passes)
        return cls(
            loaded=loaded,
            decoders=Decoders(loaded.runner, loaded.runner.model.device, settings, costs),
            chat=ChatFormat(loaded.tokenizer),
            texts=TokenTexts(loaded.tokenizer),
            cost=PlainPassCost(loaded.runner),
        )

    def memory(self) -> protocol.Memory:
        """What the engine takes now."""
        return protocol.Memory(**asdict(memory_use(self.loaded.runner)))

    def seed(self, turn: int) -> int:
        """Of the random numbers of this answer: another one for each, unless the settings say where they begin."""
        begin = self.decoders.settings.seed
        return secrets.randbits(SEED_BITS) if begin is None else (begin + turn - 1) % SEEDS


def answer(service: Service, command: protocol.Generate, emit: Emit, listener: Listener) -> None:
    """Answer the last message of a conversation, and say everything about it in events.

    Raises:
        MessageTooLong: before anything was emitted.
        NothingToAnswer: before anything was emitted.
    """
    max_new_tokens = command.max_new_tokens or DEFAULT_MAX_NEW_TOKENS
    context_length = service.loaded.context_length
    prompt = service.chat.fit(command.messages, context_length, max_new_tokens)
    seed = service.seed(command.turn)
    _announce(command.turn, prompt, max_new_tokens, seed, service, emit)
    limits = Limits(max_new_tokens, service.loaded.eos_ids)
    selector = service.decoders.begin(prompt.token_ids, seed)
    detokenizer = Detokenizer(service.texts)
    turn = _Turn(service, command.turn, prompt.token_ids, selector, limits, emit, detokenizer)
    turn.tell_tuning(time.perf_counter())
    reason: protocol.FinishReason = "failed"
    memory_used_up = False
    try:
        reason = turn.decode(listener) if turn.prefill(listener) else "stopped"
    except Exception as error:  # whatever a model raises: the turn still says why, and then that it is over
        traceback.print_exc()
        memory_used_up = memory_is_used_up(error)
        if not memory_used_up:
            emit(unexpected(error, turn=command.turn, fatal=False))
    if memory_used_up:  # not before: while an error is handled, it holds all that the pass had allocated
        save_memory(service, command.turn, emit)
    emit(turn.finished(reason))


def save_memory(service: Service, turn: int | None, emit: Emit) -> None:
    """After the memory was used up: give back what the cache takes, and have the next answers take less."""
    service.loaded.runner.save_memory()
    service.decoders.apply(smaller(service.decoders.settings))
    emit(passes_made_smaller(service.decoders.settings, turn))
    emit(protocol.SettingsApplied(settings=service.decoders.settings))


def _announce(turn: int, prompt: Prompt, max_new_tokens: int, seed: int, service: Service, emit: Emit) -> None:
    if prompt.dropped_turns:
        emit(
            protocol.HistoryTrimmed(
                turn=turn,
                dropped_turns=prompt.dropped_turns,
                dropped_messages=prompt.dropped_messages,
                tokens_before=prompt.tokens_before,
                tokens_after=len(prompt.token_ids),
                context_length=service.loaded.context_length,
            )
        )
    emit(
        protocol.TurnStarted(
            turn=turn,
            messages=prompt.messages,
            prompt_ids=prompt.token_ids,
            cached_tokens=service.loaded.runner.cached_prefix(prompt.token_ids),
            max_new_tokens=min(max_new_tokens, service.loaded.context_length - len(prompt.token_ids)),
            settings=service.decoders.settings,
            seed=seed,
        )
    )


@dataclass
class _Turn:
    """The state of one answer. Times in milliseconds unless they say otherwise; timing plain passes is left out."""

    service: Service
    number: int
    prompt: list[int]
    selector: Selector
    limits: Limits
    emit: Emit
    detokenizer: Detokenizer
    token_ids: list[int] = field(default_factory=list)
    untold: deque[tuple[Step, float]] = field(default_factory=deque)
    told_at: float = 0.0
    text: str = ""
    steps: int = 0
    prefill_seconds: float = 0.0
    decode_ms: float = 0.0
    compared_ms: float = 0.0
    plain_ms: float = 0.0
    tuned_to: LookaheadSettings | None = None
    tuned_at: float = 0.0

    def prefill(self, listener: Listener) -> bool:
        """Run the prompt through the model. False if it was stopped on the way."""
        started = time.perf_counter()
        stopped = listener.stop_wanted()
        if not stopped:
            for done in self.service.loaded.runner.prefill(self.prompt):
                self.emit(protocol.Prefilling(turn=self.number, done_tokens=done, total_tokens=len(self.prompt) - 1))
                stopped = listener.stop_wanted()
                if stopped:
                    break
        self.prefill_seconds = time.perf_counter() - started
        return not stopped

    def decode(self, listener: Listener) -> protocol.FinishReason:
        """Run the decoders to the end of the answer, or until a stop, for which the step under way is the last."""
        passes = self.service.loaded.runner.compiled
        if passes is not None:
            passes.look()
        self.service.cost.refresh()
        self.service.decoders.measure()
        try:
            return self._decode(listener)
        except Exception:  # whatever a model raises: what it had said before is told
            with contextlib.suppress(Exception):  # the first error is the one to hear of
                self._tell_steps()
            raise

    def _decode(self, listener: Listener) -> protocol.FinishReason:
        started = time.perf_counter()
        while True:
            # A change of decoder ends up here again: the next one goes on from the text, and finds it in the cache.
            listener.apply_changes(self._tell)
            decoder = self.service.decoders.chosen()
            text = [*self.prompt, *self.token_ids]
            for step in decoder.run(text, self._rest(), self.selector, len(self.token_ids)):
                now = time.perf_counter()
                step_ms, started = 1000 * (now - started), now
                self.token_ids += step.tokens
                reason = "stopped" if listener.stop_wanted() else self._end()
                self.untold.append((step, step_ms))
                if step.slots == 1:
                    self.service.cost.observe(step.cache_length, step.forward_seconds)
                if now - self.told_at > TOLD_SECONDS or reason is not None:
                    self.told_at = now
                    # What a step takes counts from the end of the one before, but for the time spent on measuring.
                    started += self._tell_and_measure(ended=reason is not None)
                    self.tell_tuning(now, ended=reason is not None)
                if reason is not None:
                    return reason
                listener.apply_changes(self._tell)
                if self.service.decoders.chosen() is not decoder:
                    break

    def _tell_and_measure(self, ended: bool) -> float:
        """Tell the steps, and time plain passes to compare them with, if that is due. The seconds that timing took."""
        larger = sum(step_ms for step, step_ms in self.untold if step.slots > 1)  # others are plain passes, and timed
        due, several = larger > 0 and not ended, len(self.untold) > 1
        took = 0.0
        if due and several:  # so they are short, as are plain passes: nobody sees that they come later
            took = self.service.cost.refresh(larger / 1000)
        self._tell_steps(ended)
        if due and not several:
            took = self.service.cost.refresh(larger / 1000)
        return took

    def tell_tuning(self, now: float, ended: bool = False) -> None:
        """Say what `auto` has taken: when that is something new, at the end, and now and then between."""
        chosen = self.service.decoders.chosen_by_auto()
        if chosen is None:
            return
        if chosen != self.tuned_to or ended or now - self.tuned_at > TUNING_SECONDS:
            self.tuned_to, self.tuned_at = chosen, now
            self._tell(self.service.decoders.tuning(self.number))

    def _rest(self) -> Limits:
        return Limits(self.limits.max_new_tokens - len(self.token_ids), self.limits.eos_ids)

    def _end(self) -> protocol.FinishReason | None:
        """Why the answer is at its end, if it is."""
        if self.token_ids[-1] in self.limits.eos_ids:
            return "eos"
        if len(self.token_ids) == self.limits.max_new_tokens:
            return "max_new_tokens"
        if len(self.prompt) + len(self.token_ids) == self.service.loaded.context_length:
            return "context"
        return None

    def _plain_ms(self, step: Step, step_ms: float) -> float | None:
        """What a plain pass takes where this step stands."""
        plain_ms = self.service.cost.milliseconds(step.cache_length)
        self.decode_ms += step_ms
        if plain_ms is not None:
            self.compared_ms += step_ms
            self.plain_ms += len(step.tokens) * plain_ms
        return plain_ms

    def _tell(self, *events: protocol.Event) -> None:
        """Say something behind all steps so far."""
        self._tell_steps()
        self.emit(*events)

    def _tell_steps(self, ended: bool = False) -> None:
        events: list[protocol.Event] = []
        try:
            while self.untold:
                events.append(self._event_of(*self.untold.popleft(), ended=ended))
        finally:  # also where one cannot be told
            self.emit(*events)

    def _event_of(self, step: Step, step_ms: float, ended: bool) -> protocol.Step:
        pieces = self.detokenizer.push(step.tokens)
        if ended and not self.untold:
            pieces[-1] += self.detokenizer.finish()
        event = step_event(
            step,
            self.service.texts,
            turn=self.number,
            index=self.steps,
            pieces=pieces,
            step_ms=step_ms,
            plain_ms=self._plain_ms(step, step_ms),
        )
        self.steps += 1
        self.text += "".join(pieces)
        return event

    def finished(self, reason: protocol.FinishReason) -> protocol.TurnFinished:
        """The closing event."""
        return protocol.TurnFinished(
            turn=self.number,
            reason=reason,
            text=self.text,
            token_ids=self.token_ids,
            steps=self.steps,
            prefill_seconds=self.prefill_seconds,
            decode_seconds=self.decode_ms / 1000,
            estimated_speedup=self.plain_ms / self.compared_ms if self.compared_ms else None,
            memory=self.service.memory(),
        )
