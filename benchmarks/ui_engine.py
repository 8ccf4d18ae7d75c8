"""An engine without a model, for `benchmarks.ui`: it repeats the steps of a recording, as many a second as are wanted.

What it is asked is what it does: `stream` has it send steps until it is stopped, `fill 5000` an answer of that many
tokens, as fast as it can, which ends with the number of its turn between two marks (`end_of`). The app that talks to it
is the real one, with a real pipe between them.
"""

import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from ladechat.app import LadechatApp
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.garbage import collect_what_is_new
from ladechat.protocol import Event, Generate, Header, Ready, Settings, Step, Stop, TurnFinished, TurnStarted
from ladechat.screens.chat.screen import ChatScreen
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.engine import Order
from ladechat.session.live import LiveEngine
from ladechat.session.session import Session

STEPS_PER_SECOND = 320
WRITES_PER_SECOND = 32
"""Like the real engine, it writes the steps of one frame of the app together."""


def end_of(turn: int) -> str:
    """What an answer of `fill` ends with; nothing else of the recording or the app looks like it."""
    return f"∎{turn}∎"


def run_app(recording: str) -> None:
    """The real app on this terminal, with this engine."""
    engine = [sys.executable, "-m", "benchmarks.ui_engine", recording]
    session = Session(lambda _: LiveEngine(engine), Settings(decoder="lookahead"), Conversation(model="demo"))
    collect_what_is_new()
    LadechatApp(ChatScreen(session, "demo"), session).run()


class Script:
    """The events of a recorded answer, to be sent again and again.

    Args:
        recording: one question to the bundled model, as `ladechat ask --json` writes it.
    """

    def __init__(self, recording: Path) -> None:
        order = Order(restarts=False)
        events = [order.event(line) for line in recording.read_bytes().splitlines(keepends=True)]
        self.opening: list[Event] = [event for event in events if isinstance(event, Header | Ready)]
        self._steps = [event for event in events if isinstance(event, Step)]
        self._started = next(event for event in events if isinstance(event, TurnStarted))
        self._finished = next(event for event in events if isinstance(event, TurnFinished))

    def start(self, turn: int) -> TurnStarted:
        """The beginning of an answer."""
        return replace(self._started, turn=turn)

    def steps(self, turn: int) -> Iterator[Step]:
        """Its steps, without end."""
        return (replace(self._steps[index % len(self._steps)], turn=turn, index=index) for index in count())

    def finish(self, turn: int, steps: int, seconds: float) -> TurnFinished:
        """Its end. The text is that of the recording: the app has shown what came."""
        return replace(self._finished, turn=turn, reason="stopped", steps=steps, decode_seconds=seconds)


class Engine:
    """Answers questions, one after another."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._stream = EventStream.take_over_stdout()
        self._inbox = Inbox(sys.stdin.fileno(), self._stream)

    def run(self) -> None:
        """Serve until the input ends, which ends the process."""
        self._stream.emit(*self._script.opening)
        while True:
            command = self._inbox.wait()
            if isinstance(command, Generate):
                wanted, _, tokens = command.messages[-1].content.partition(" ")
                self._stream.emit(self._script.start(command.turn))
                began = time.perf_counter()
                steps = self._fill(command.turn, int(tokens)) if wanted == "fill" else self._send(command.turn)
                self._stream.emit(self._script.finish(command.turn, steps, time.perf_counter() - began))

    def _fill(self, turn: int, tokens: int) -> int:
        for step in self._script.steps(turn):
            tokens -= len(step.token_ids)
            if tokens <= 0:
                break
            self._stream.emit(step)
        self._stream.emit(replace(step, pieces=[*step.pieces[:-1], f" {end_of(turn)}"]))
        return step.index + 1

    def _send(self, turn: int) -> int:
        """Steps at the wanted rate, until a stop comes."""
        steps = self._script.steps(turn)
        began = time.perf_counter()
        for write in count(1):
            due = began + write / WRITES_PER_SECOND
            left = 1.0
            while left > 0:
                left = due - time.perf_counter()
                if isinstance(self._inbox.poll(max(left, 0)), Stop):
                    return (write - 1) * STEPS_PER_SECOND // WRITES_PER_SECOND
            self._stream.emit(*(next(steps) for _ in range(STEPS_PER_SECOND // WRITES_PER_SECOND)))
        raise AssertionError  # `count` has no end


if __name__ == "__main__":
    Engine(Script(Path(sys.argv[1]))).run()
