"""An engine at the other end of a pipe, for tests: send commands, wait for events.

`Wire` is a process of its own, for what is about how one is started, and `tests.engine.forked.Forked` one for what is
about processes beside that. Everything else is asked of `tests.engine.inside.Inside`. Each costs a tenth of the one
before.
"""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol, TypeVar

from ladechat.protocol import (
    WHERE,
    Command,
    Event,
    Failed,
    Generate,
    Message,
    Pace,
    Ready,
    Step,
    TurnFinished,
    TurnStarted,
    decode_event,
    encode,
)
from tests.waiting import patience, wait_for

ROOT = Path(__file__).parent.parent.parent

E = TypeVar("E", bound=Event)


class Line:
    """A line to an engine, wherever that runs. Every line that comes from it must decode as an event.

    Args:
        commands: is written to.
        events: the lines that come.
    """

    def __init__(self, commands: IO[bytes], events: IO[bytes]) -> None:
        self.seen: list[Event] = []
        self._commands = commands
        self._arrived: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._turn = 0
        threading.Thread(target=self._read, args=(events,), daemon=True).start()

    def _read(self, events: IO[bytes]) -> None:
        with events:
            for line in events:
                try:
                    event = decode_event(line)
                    assert event is not None, f"an event of an unknown kind: {line!r}"
                    self._arrived.put(event)
                except Exception as error:  # whatever it is, it is the reading test that has to see it
                    self._arrived.put(error)
        self._arrived.put(None)

    @property
    def log(self) -> str:
        """What the engine has said besides events."""
        return ""

    def where(self) -> None:
        """Have an engine that hangs say where it is."""

    def send(self, command: Command | bytes) -> None:
        """Send a command, or a line that is none."""
        self._commands.write(command if isinstance(command, bytes) else encode(command))
        self._commands.flush()

    def generate(self, *messages: Message | str, max_new_tokens: int | None = None) -> int:
        """Ask, and return the number of the turn."""
        self._turn += 1
        said = [m if isinstance(m, Message) else Message(role="user", content=m) for m in messages]
        self.send(Generate(turn=self._turn, messages=said, max_new_tokens=max_new_tokens))
        return self._turn

    def next(self) -> Event:
        """The next event."""
        event = self._next()
        assert event is not None, f"the engine ended:\n{self.log}"
        return event

    def rest(self) -> list[Event]:
        """What else comes, up to the end of the stream."""
        return list(iter(self._next, None))

    def _next(self) -> Event | None:
        try:
            event = self._arrived.get(timeout=patience())
        except queue.Empty:
            self.where()
            raise AssertionError(f"Nothing came from the engine any more. Where it is:\n{self.log}") from None
        if isinstance(event, Exception):
            raise event
        if event is not None:
            self.seen.append(event)
        return event

    def until(self, kind: type[E], condition: Callable[[E], bool] = lambda _: True) -> E:
        """Read on to the first event of this kind that meets the condition."""
        while True:
            event = self.next()
            if isinstance(event, kind) and condition(event):
                return event

    def finish(self, turn: int) -> tuple[list[Step], TurnFinished]:
        """Read on to the end of a turn: its steps that were not read yet, and its end."""
        start = len(self.seen)
        end = self.until(TurnFinished, lambda event: event.turn == turn)
        return [event for event in self.seen[start:] if isinstance(event, Step)], end

    def ask(self, *messages: Message | str, max_new_tokens: int | None = None) -> tuple[list[Step], TurnFinished]:
        """Ask, and read to the end of the answer."""
        return self.finish(self.generate(*messages, max_new_tokens=max_new_tokens))

    def begin(self, *messages: Message | str, steps: int = 1, max_new_tokens: int | None = None) -> int:
        """Ask, and have it wait in the middle of the answer, after so many steps: it ends before no test is ready."""
        self.send(Pace(steps_per_second=0))
        turn = self.generate(*messages, max_new_tokens=max_new_tokens)
        self.until(TurnStarted, lambda event: event.turn == turn)
        for _ in range(steps):
            self.step()
        return turn

    def step(self) -> Step:
        """One more step of an engine that waits."""
        self.send(Pace(steps_per_second=0, step=True))
        return self.until(Step)

    def go_on(self) -> None:
        """Have it write on, as fast as it can."""
        self.send(Pace())

    def of_turn(self, kind: type[E], turn: int) -> list[E]:
        """What was read of a turn, of one kind."""
        return [event for event in self.seen if isinstance(event, kind) and getattr(event, "turn", None) == turn]


class Process(Protocol):
    """What a test needs of a process, as `subprocess.Popen` has it."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, unless it has ended."""

    def kill(self) -> None:
        """End it, whatever it is doing."""


class ProcessLine(Line):
    """An engine that is a process.

    Args:
        process: the engine.
        commands: its standard input.
        events: its standard output.
        log: its standard error.
    """

    def __init__(self, process: Process, commands: IO[bytes], events: IO[bytes], log: IO[bytes]) -> None:
        self.process = process
        super().__init__(commands, events)
        self._stderr: list[bytes] = []
        threading.Thread(target=self._drain, args=(log,), daemon=True).start()

    def _drain(self, log: IO[bytes]) -> None:
        with log:
            self._stderr.extend(log)

    @property
    def log(self) -> str:
        """What came on standard error so far."""
        return b"".join(self._stderr).decode()

    def where(self) -> None:
        """Its stacks, in its log."""
        if self.seen:  # before its first word the signal would end it
            self.process.send_signal(WHERE)
            wait_for(lambda: "most recent call first" in self.log)

    def end(self) -> int:
        """End its input; the exit code, when the process has ended."""
        self._commands.close()
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """The exit code, when the process has ended."""
        return self.process.wait(timeout=patience())

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()


class Wire(ProcessLine):
    """A `ladechat engine` process, without `--auto` unless it is given."""

    def __init__(
        self,
        *arguments: str,
        program: Sequence[str] = ("-P", "-m", "ladechat", "engine"),
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
    ) -> None:
        window = () if {"--auto", "--decoder"} & {*arguments} else ("--no-auto",)
        process = subprocess.Popen(
            [sys.executable, *program, *(window if program[-1] == "engine" else ()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        super().__init__(process, process.stdin, process.stdout, process.stderr)


def refused(*arguments: str) -> Failed:
    """Why an engine, as a process, has ended before it was ready."""
    wire = Wire(*arguments)
    failed = wire.until(Failed)
    assert wire.wait_for_end() == 1
    wire.rest()
    assert failed.fatal and not any(isinstance(event, Ready | Step) for event in wire.seen)
    return failed


def started(*arguments: str) -> tuple[Wire, Ready]:
    """An engine that has loaded its model, as a process."""
    wire = Wire(*arguments)
    return wire, wire.until(Ready)
