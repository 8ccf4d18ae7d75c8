"""One engine, from its start to its end: its commands, its events, and the time since the last one."""

import asyncio
from collections.abc import Callable, Coroutine

from ladechat.protocol import Command, Event, Failed
from ladechat.session.silence import Silence
from ladechat.session.source import EngineSource, and_last_line


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
        self._silence = Silence()
        self._dumped_stacks = False

    def start(self, after: "EngineRun | None" = None, began: Callable[[], None] = lambda: None) -> None:
        """Start the engine, unless it was started. Commands that were sent before reach it.

        Args:
            after: an engine that has to end first.
            began: called once that one has ended.
        """
        if self._running is None:
            self._silence.end()
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
        if self._running is not None:
            self._running.cancel()
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

    def restart_silence(self) -> None:
        """Count the silence from now."""
        self._silence.end()

    def silent_for(self, limit: float | None) -> float | None:
        """Return the seconds of a silence longer than `limit`, else None; once per silence, ask for the stacks."""
        seconds = self._silence.beyond(limit)
        if seconds is not None and not self._dumped_stacks:
            self._engine.dump_stacks()
        self._dumped_stacks = seconds is not None
        return seconds

    async def run(self, after: "EngineRun | None", began: Callable[[], None]) -> None:
        """Run the engine to its end; `start` runs this in a task of its own."""
        if after is not None:
            await after.close()
        self._silence.end()
        began()
        last: Event | None = None
        try:
            await self._engine.start()
            async for last in self._engine.events():
                self._silence.end()
                self.came(last)
            await self._engine.close()
            why = and_last_line("The engine has ended.", self._engine)
        except OSError as error:
            why = f"The engine could not be run: {error}."
        has_said_why = isinstance(last, Failed) and last.fatal
        self.ended(None if has_said_why else why)
