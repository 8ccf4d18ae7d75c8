"""An engine from its start to its end: its commands, its events, and the time since the last one."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from ladechat.protocol import Command, Event, Failed, Header, Loading, Settings
from ladechat.session.source import EngineSource, NewEngine, and_last_line


class EngineRun:
    """Runs an engine in a task of its own, and passes on its events as they arrive.

    Args:
        engine: an engine that was not started yet.
        came: called with each event.
        ended: called once, when the engine has ended by itself, with the reason; None if its last event gave it.
    """

    def __init__(
        self, engine: EngineSource, came: Callable[[Event], None], ended: Callable[[str | None], None]
    ) -> None:
        self.came = came
        self.ended = ended
        self._engine = engine
        self._running: asyncio.Task[None] | None = None
        self._others: list[EngineRun] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent_since = time.monotonic()
        self._dumped_stacks = False

    def start(self, after: "EngineRun | None" = None, began: Callable[[], None] = lambda: None) -> None:
        """Start the engine, unless it was started. Commands that were sent before reach it.

        Args:
            after: an engine that has to end first.
            began: called once that one has ended.
        """
        if self._running is None:
            self.reset_silence()
            self._running = asyncio.create_task(self.run(after, began))
            if after is not None:
                self._others.append(after)

    def end_other(self, other: "EngineRun") -> None:
        """End another engine in the background; it has ended at the latest when this one is closed."""
        self._others.append(other)
        self._spawn(other.close())

    def let_go(self) -> None:
        """Pass on no more events. The engine still has to be closed."""
        if self._running is not None:
            self._running.cancel()

    async def close(self) -> None:
        """End the engine and those passed to `end_other`, and wait until they have ended."""
        self.let_go()
        if self._running is not None:
            await asyncio.wait([self._running])  # awaiting it would raise its cancellation in this task
        for other in self._others:
            await other.close()
        await self._engine.close()

    def end(self) -> None:
        """End the engine; its end is reported like any other."""
        self._spawn(self._engine.close())

    def send(self, command: Command) -> None:
        """Send a command without waiting until it is written."""
        self._spawn(self._engine.send(command))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def reset_silence(self) -> None:
        """Count the silence from now."""
        self._silent_since = time.monotonic()

    def silent_for(self, limit: float | None) -> float | None:
        """Return the seconds of a silence longer than `limit`, else None; once per silence, ask for the stacks."""
        seconds = time.monotonic() - self._silent_since
        silent = limit is not None and seconds > limit
        if silent and not self._dumped_stacks:
            self._engine.dump_stacks()
        self._dumped_stacks = silent
        return seconds if silent else None

    async def run(self, after: "EngineRun | None", began: Callable[[], None]) -> None:
        """Run the engine to its end; `start` runs this in a task of its own."""
        if after is not None:
            await after.close()
        self.reset_silence()
        began()
        last: Event | None = None
        try:
            await self._engine.start()
            async for last in self._engine.events():
                self.reset_silence()
                self.came(last)
            await self._engine.close()  # only now all of its log is there, of which the reason is a line
            why = and_last_line("The engine has ended.", self._engine)
        except OSError as error:
            why = f"The engine could not be run: {error}."
        has_said_why = isinstance(last, Failed) and last.fatal
        self.ended(None if has_said_why else why)


@dataclass(frozen=True)
class WayBack:
    """The model and decoder to return to if the chosen model cannot be loaded."""

    model: str
    new_engine: NewEngine
    decoder: str


class ModelTrial(EngineRun):
    """An engine that looks for the files of its model while another one answers, so that a wrong name changes nothing.

    Until they are found it takes hardly any memory, and its events are not shown.

    Args:
        model: the model's name.
        new_engine: creates its engine, and each later one.
        settings: the settings that its engine starts with.
        found: called when the files were found, or their download begins. Further events go to the new `came`.
        refused: called once, when the model cannot be used, with the reason.

    Attributes:
        events: its events so far.
    """

    def __init__(
        self,
        model: str,
        new_engine: NewEngine,
        settings: Settings,
        found: "Callable[[ModelTrial], None]",
        refused: "Callable[[ModelTrial, Failed], None]",
    ) -> None:
        super().__init__(new_engine(settings), self._look_at, self._refuse_after_end)
        self.model = model
        self.new_engine = new_engine
        self.settings = settings
        self.events: list[Event] = []
        self._found = found
        self._refused = refused

    def _look_at(self, event: Event) -> None:
        self.events.append(event)
        looking = isinstance(event, Loading) and event.stage == 1 and event.total_bytes is None
        if isinstance(event, Failed) and event.fatal:
            self._refused(self, event)
        elif not looking and not isinstance(event, Header):
            self._found(self)

    def _refuse_after_end(self, why: str | None) -> None:
        if why is not None:
            hint = "/model takes another one, or this one once more."
            self._refused(self, Failed(code="internal", message=why, hint=hint, fatal=True))
