"""One session with an engine: its state, the conversation with it, and its events on their way to the screen.

It knows no screen: `Listener` is what it needs of one. When an engine has ended, another takes its place in the same
session, with the settings that were wished for last.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from ladechat import catalog
from ladechat.protocol import (
    Asked,
    Command,
    Configure,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    Failed,
    Header,
    Loading,
    Pace,
    Ready,
    Settings,
    SettingsApplied,
    Stop,
    SystemPrompt,
    TurnFinished,
    TurnStarted,
    Watch,
)
from ladechat.session.conversation import Conversation
from ladechat.session.conversation_file import Kept
from ladechat.session.measuring import Measuring
from ladechat.session.pace import ViewerPace
from ladechat.session.recording import Recorder
from ladechat.session.silence import Silence
from ladechat.session.source import EngineSource
from ladechat.session.state import SILENCE_SECONDS, State, Trigger, following

NewEngine = Callable[[Settings], EngineSource]
"""Makes an engine that will start with these settings."""

BROKEN_OFF = Failed(
    code="internal",
    message="This answer was broken off: the engine is started again.",
    hint="Its question is kept.",
    fatal=True,
)
DOWNLOAD_STOPPED = Failed(
    code="internal",
    message="The download was stopped; what has come is kept.",
    hint="F5 goes on with it.",
    fatal=True,
)
RESTART_HINT = "The conversation is still here; F5 starts the engine again."


class Listener(Protocol):
    """What a session needs of a screen."""

    def show(self, events: Sequence[Event]) -> None:
        """Draw events, in their order."""
        ...

    def give_back(self, question: str) -> None:
        """Offer the user a question that got no answer."""
        ...

    def recording_failed(self, error: OSError) -> None:
        """Say that the recording has ended early."""
        ...


class EngineSession:
    """Asks, stops, configures and restarts. Its state follows from the events that it has shown.

    Args:
        new_engine: makes the first engine, and each one after it.
        settings: the first engine's.
        conversation: what is sent with each question.
        recorder: sees every event; a recording may be running already.

    Attributes:
        state: see `State`.
        wished: the settings that the user wants; the next engine starts with them.
        pace: the pace that the user wants.
        listener: the screen.
    """

    def __init__(
        self,
        new_engine: NewEngine,
        settings: Settings,
        conversation: Conversation,
        recorder: Recorder | None = None,
    ) -> None:
        self.state = State.STARTING
        self.wished = settings
        self.conversation = conversation
        self.recorder = recorder or Recorder()
        self.pace = ViewerPace()
        self.listener: Listener | None = None
        self._new_engine = new_engine
        self._engine = new_engine(settings)
        self._leaving: EngineSource | None = None
        self._running: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._queue: list[str] = []
        self._unseen: list[Event] = []
        self._silence = Silence()
        self._dumped_stacks = False
        self._settings_will_shrink = False
        self._lens = False

    @property
    def asking(self) -> bool:
        """Does a question wait for its answer, or for the rest of it?"""
        return self.conversation.pending is not None

    @property
    def waiting(self) -> int:
        """How many questions will be asked when this one has its answer."""
        return len(self._queue)

    # --- the engine ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first engine. Commands that were sent before reach it."""
        if self._running is None:
            self._silence.end()
            self._running = asyncio.create_task(self._run(self._engine))

    def restart(self) -> bool:
        """Put a new engine in the place of this one; False while an earlier one is still being ended."""
        if self.state is State.RESTARTING:
            return False
        self._show_all()  # what is in the recording is on the screen too
        if self.asking:
            self._add(BROKEN_OFF)
        if self._running is not None:
            self._running.cancel()
        self._move(Trigger.RESTART)
        self._leaving, self._engine = self._engine, self._new_engine(self.wished)
        if self._lens:
            self._send(Watch(lens=True))
        self.pace = self.pace.pause(False)  # it was for the answer that is broken off
        if self.pace.rate is not None:
            self._send(self.pace.command())
        self._running = asyncio.create_task(self._run(self._engine))
        return True

    def use_model(self, model: str, new_engine: NewEngine) -> bool:
        """Put an engine with another model in the place of this one; False while an earlier one is still being ended.

        A decoder that not every model has, as one that drafts with what was trained for it, gives way to the default.
        """
        if self.state is State.RESTARTING:
            return False
        self._new_engine = new_engine
        info = catalog.DECODERS.get(self.wished.decoder)
        if info is None or info.needs is not None or info.least_layers:
            self.wished = replace(self.wished, decoder=Settings().decoder)
        self.restart()
        self.conversation.use_model(model)
        return True

    async def close(self) -> None:
        """End the engine, then the recording."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        for engine in (self._leaving, self._engine):
            if engine is not None:
                await engine.close()
        self.stop_recording()

    async def _run(self, engine: EngineSource) -> None:
        """Wait until the engine before has ended, start this one, and take in its events until it ends too."""
        if self._leaving is not None:
            await self._leaving.close()
            self._leaving = None
        self._silence.end()
        self._move(Trigger.RESTARTED)
        last: Event | None = None
        try:
            await engine.start()
            async for last in engine.events():
                self._silence.end()
                self._record(last)
                self._unseen.append(last)
            await engine.close()
            message = "The engine has ended."
        except OSError as error:
            message = f"The engine could not be run: {error}."
        self._show_all()
        if not (isinstance(last, Failed) and last.fatal):  # else it has said why
            downloading = self.state is State.DOWNLOADING
            failed = Failed(code="internal", message=message, hint=RESTART_HINT, fatal=True)
            self._add(DOWNLOAD_STOPPED if downloading else failed)

    def _send(self, command: Command) -> None:
        sending = asyncio.create_task(self._engine.send(command))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def stuck_for(self) -> float | None:
        """Seconds of silence of an engine that should have sent something; None while all is well, as in a pause.

        Once in each such silence the engine is asked for its thread stacks.
        """
        limit = SILENCE_SECONDS.get(self.state)
        if self.state is State.READY and self.asking:
            limit = SILENCE_SECONDS[State.ANSWERING]
        if self.pace.paused and self.asking and self.state in (State.READY, State.ANSWERING):
            limit = None
        seconds = self._silence.beyond(limit)
        if seconds is not None and not self._dumped_stacks:
            self._engine.dump_stacks()
        self._dumped_stacks = seconds is not None
        return seconds

    # --- what the user wants ------------------------------------------------------------------------------------------

    def ask(self, text: str) -> None:
        """Show a question and send it. An engine that still loads answers it when it has loaded."""
        command = self.conversation.ask(text)
        self._silence.end()
        self._send(command)
        self._add(Asked(turn=command.turn, text=text))

    def ask_later(self, text: str) -> None:
        """Ask as soon as no other question waits."""
        self._queue.append(text)

    def stop(self) -> None:
        """Stop the answer after the step under way, and with it a pause; or a download, and with it the engine; or what
        an engine searches for while it loads.
        """
        if self.state is State.DOWNLOADING:
            closing = asyncio.create_task(self._engine.close())
            self._sending.add(closing)
            closing.add_done_callback(self._sending.discard)
        elif self.asking or self.state is State.LOADING:
            self._send(Stop())
            self._move(Trigger.STOP)
            self.set_pace(self.pace.pause(False))  # after the stop: no step slips in between

    def configure(self, change: Configure) -> None:
        """Ask for other settings. What then holds, the engine says."""
        given = {name: getattr(change, name) for name in change.__struct_fields__}
        given["parameters"] = {**self.wished.parameters, **(change.parameters or {})}
        self.wished = replace(self.wished, **{name: value for name, value in given.items() if value is not None})
        self._send(change)

    def set_pace(self, pace: ViewerPace) -> None:
        """Have the engine take its steps at another pace, in this answer and those after it."""
        if pace != self.pace:
            self.pace = pace
            self._silence.end()
            self._send(pace.command())

    def take_step(self) -> None:
        """One step of a paused answer."""
        self._send(Pace(steps_per_second=0.0, step=True))

    def watch(self, lens: bool) -> None:
        """Say whether somebody looks at what hidden states read at each layer; a new engine is told it too."""
        if lens != self._lens:
            self._lens = lens
            self._send(Watch(lens=lens))

    def race(self, text: str) -> Measuring | None:
        """Decoders side by side on a text, or without one on the last question; None if there is neither.

        They have an engine to themselves, so that this one keeps its cache and what its decoders have learnt.
        """
        command = self.conversation.again(text)
        if command is None:
            return None
        return Measuring(self._new_engine(self.wished), command.messages, max_new_tokens=command.max_new_tokens)

    def clear(self) -> None:
        """Begin a new conversation."""
        self.conversation.restart()
        self._queue.clear()
        self._add(ConversationCleared())

    def open(self, kept: Kept) -> None:
        """Go on with a kept conversation, in the place of this one."""
        self._queue.clear()
        system = self.conversation.system
        self._add(ConversationOpened(exchanges=self.conversation.open(kept)))
        if self.conversation.system != system:
            self._add(SystemPrompt(text=self.conversation.system))

    def instruct(self, system: str) -> None:
        """Say how the model should behave, from the next question on."""
        self.conversation.instruct(system)
        self._add(SystemPrompt(text=system))

    def take_back(self) -> str | None:
        """Take the last question that was answered, and its answer, out; the question, None if there is none."""
        question = self.conversation.remove_last()
        if question is not None:
            self._add(ExchangeRemoved())
        return question

    def stop_recording(self) -> None:
        """End the recording, if there is one."""
        try:
            self.recorder.stop()
        except OSError as error:
            self._recording_failed(error)

    # --- events -------------------------------------------------------------------------------------------------------

    def frame(self) -> None:
        """Show the events that have come since the last frame, all together."""
        self._show_all()

    def _add(self, event: Event) -> None:
        """Put an event of our own into the stream, and show it at once."""
        self._record(event, own=True)
        self._unseen.append(event)
        self._show_all()

    def _show_all(self) -> None:
        events, self._unseen = self._unseen, []
        if events and self.listener is not None:
            self.listener.show(events)
        for event in events:
            self._react(event)

    def _record(self, event: Event, *, own: bool = False) -> None:
        try:
            (self.recorder.record_own if own else self.recorder.record)(event)
        except OSError as error:
            self._recording_failed(error)

    def _recording_failed(self, error: OSError) -> None:
        if self.listener is not None:
            self.listener.recording_failed(error)

    def _move(self, trigger: Trigger) -> None:
        self.state = following(self.state, trigger)

    def _react(self, event: Event) -> None:
        """What follows from an event besides what is on the screen."""
        match event:
            case Header():
                self._move(Trigger.HEADER)
            case Loading():
                self._move(Trigger.LOAD if event.total_bytes is None else Trigger.DOWNLOAD)
            case Ready():
                self._move(Trigger.READY)
                if not self.asking:
                    self._ask_next()
            case TurnStarted():
                self._move(Trigger.TURN_STARTED)
            case TurnFinished():
                self._move(Trigger.TURN_FINISHED)
                self.conversation.answered(event, self.wished.decoder)
                self._give_up()
                self._ask_next()
            case SettingsApplied() if self._settings_will_shrink:
                self._settings_will_shrink = False
                kept = {**self.wished.parameters, **event.settings.parameters}
                self.wished = replace(event.settings, parameters=kept)
            case Failed():
                self._react_to_failure(event)

    def _react_to_failure(self, event: Failed) -> None:
        self._settings_will_shrink = event.code == "out_of_memory" and not event.fatal
        if event.fatal:
            self._move(Trigger.END)
            self._give_up(keep_order=True)
        elif event.turn is not None and self.state not in (State.ANSWERING, State.STOPPING):  # else its end follows
            self._give_up()
            self._ask_next()

    def _give_up(self, *, keep_order: bool = False) -> None:
        """A question that got no answer goes back to the user; or into the queue, before those that may refer to it."""
        question = self.conversation.give_up()
        if question is None:
            return
        if keep_order and self._queue:
            self._queue.insert(0, question)
        elif self.listener is not None:
            self.listener.give_back(question)

    def _ask_next(self) -> None:
        if self._queue:
            self.ask(self._queue.pop(0))
