"""Answers without a process: of a service alone, and of an engine whose commands are a list."""

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from ladechat.engine.server import Engine
from ladechat.engine.service import Service
from ladechat.engine.turn import Emit, answer
from ladechat.protocol import Command, Event, Failed, Generate, Message, Step, TurnFinished
from tests.engine.messages import user

E = TypeVar("E", bound=Event)


class Listener:
    """Lets an answer run, and wants a stop from the time on that it is asked so often; by default never."""

    def __init__(self, stop_at: int | None = None) -> None:
        self._stop_at = stop_at
        self.asked = 0

    def take_commands(self) -> bool:
        self.asked += 1
        return self._stop_at is not None and self.asked >= self._stop_at

    def until_due(self, _emit: Emit) -> float:
        return 0.0


def stop_after(steps: int | None) -> Listener:
    """A listener that wants a stop after so many steps; None: never."""
    return Listener(None if steps is None else steps + 2)  # it is asked before the prompt, and after it


def as_messages(said: Sequence[Message | str]) -> list[Message]:
    return [one if isinstance(one, Message) else user(one) for one in said]


def ask(service: Service, *said: Message | str, listener: Listener | None = None, **options: Any) -> list[Event]:
    """All that an answer says; the options are those of `Generate`."""
    events: list[Event] = []
    command = Generate(turn=1, messages=as_messages(said), **options)
    answer(service, command, lambda *new: events.extend(new), listener or Listener())
    return events


def of_kind(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def end_of(events: Sequence[Event]) -> TurnFinished:
    """The end of an answer, after which it says nothing."""
    end = events[-1]
    assert isinstance(end, TurnFinished)
    return end


def failure(events: Sequence[Event]) -> Failed:
    """The one thing that has failed."""
    (failed,) = of_kind(events, Failed)
    return failed


def assert_adds_up(events: Sequence[Event]) -> list[Step]:
    """Steps are counted from 0, and the end of their answer has their tokens and pieces. The steps."""
    steps, end = of_kind(events, Step), end_of(events)
    assert [step.index for step in steps] == list(range(len(steps)))
    assert end.token_ids == [token for step in steps for token in step.token_ids]
    assert end.text == "".join(piece for step in steps for piece in step.pieces)
    return steps


def said_by(end: TurnFinished) -> Message:
    """An answer as the app sends it with the next question."""
    return Message(role="assistant", content=end.text, token_ids=end.token_ids)


class Script:
    """Both ends of an engine without a process: commands in their order, and all that it says."""

    stop_came = False

    def __init__(self, *commands: Command) -> None:
        self.events: list[Event] = []
        self._commands: deque[tuple[Command, Sequence[Command]]] = deque((one, ()) for one in commands)
        self._during: deque[Command] = deque()

    def emit(self, *events: Event) -> None:
        self.events += events

    def wait(self) -> Command:
        if not self._commands:
            raise SystemExit  # the way out of an engine that serves for ever
        command, during = self._commands.popleft()
        self._during.extend(during)
        return command

    def poll(self, _seconds: float | None = 0.0) -> Command | None:
        return self._during.popleft() if self._during else None


class Scripted(Script):
    """An engine that carries out what it is told to."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service
        self._engine = Engine(service, self, self)  # type: ignore[arg-type]  # it is both

    def carry_out(self, *commands: Command, during: Sequence[Command] = ()) -> list[Event]:
        """What it says to these commands; `during` comes while it carries out the first."""
        before = len(self.events)
        self._commands.extend((one, during if place == 0 else ()) for place, one in enumerate(commands))
        with pytest.raises(SystemExit):
            self._engine.run()
        return self.events[before:]

    def ask(self, *said: Message | str, turn: int = 1, **options: Any) -> list[Event]:
        return self.carry_out(Generate(turn=turn, messages=as_messages(said), **options))
