"""An engine at the other end of a real pipe, for tests: send commands, wait for events."""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ladechat.protocol import WHERE, Command, Event, Generate, Message, Ready, Step, TurnFinished, decode_event, encode

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 150
"""Until something that must come is given up. Importing torch on a busy machine takes long; nothing here is timed."""

SECONDS_TO_WRITE = 5
"""For an engine that hangs to say where."""

E = TypeVar("E", bound=Event)


class Wire:
    """A `ladechat engine` process, without `--auto` unless it is given. Every line of it must decode as an event."""

    def __init__(
        self,
        *arguments: str,
        program: Sequence[str] = ("-P", "-m", "ladechat", "engine"),
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
    ) -> None:
        window = () if "--auto" in arguments else ("--no-auto",)
        self.process = subprocess.Popen(
            [sys.executable, *program, *(window if program[-1] == "engine" else ()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        )
        self.seen: list[Event] = []
        self._arrived: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._turn = 0
        self._stderr: list[bytes] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                event = decode_event(line)
                assert event is not None, f"an event of an unknown kind: {line!r}"
                self._arrived.put(event)
            except Exception as error:  # whatever it is, it is the reading test that has to see it
                self._arrived.put(error)
        self._arrived.put(None)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self._stderr.extend(self.process.stderr)

    @property
    def log(self) -> str:
        """What came on standard error so far."""
        return b"".join(self._stderr).decode()

    def send(self, command: Command | bytes) -> None:
        """Send a command, or a line that is none."""
        assert self.process.stdin is not None
        self.process.stdin.write(command if isinstance(command, bytes) else encode(command))
        self.process.stdin.flush()

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
            event = self._arrived.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            if self.seen:  # before its first word the signal would end it
                self.process.send_signal(WHERE)
                time.sleep(SECONDS_TO_WRITE)
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

    def of_turn(self, kind: type[E], turn: int) -> list[E]:
        """What was read of a turn, of one kind."""
        return [event for event in self.seen if isinstance(event, kind) and getattr(event, "turn", None) == turn]

    def end(self) -> int:
        """End its input; the exit code, when the process has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """The exit code, when the process has ended."""
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()


def started(*arguments: str) -> tuple[Wire, Ready]:
    """An engine that has loaded its model."""
    wire = Wire(*arguments)
    return wire, wire.until(Ready)
