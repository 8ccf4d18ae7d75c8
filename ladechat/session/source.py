"""What the UI needs of an engine. One on this machine, one far away, and a scripted one look the same to it."""

from collections.abc import AsyncIterator
from typing import Protocol

from ladechat.protocol import Command, Event


class EngineSource(Protocol):
    """A source of events that takes commands."""

    @property
    def last_line(self) -> str:
        """The last line of its log, which is whole after `close`; "" where there is none."""
        ...

    async def start(self) -> None:
        """Begin. From now on events come, and commands are taken, also while the model loads."""
        ...

    async def send(self, command: Command) -> None:
        """Pass a command on. One that comes after the end is dropped."""
        ...

    def dump_stacks(self) -> None:
        """Ask a stuck engine to write its thread stacks into its log."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """The engine's events, until it ends."""
        ...

    async def close(self) -> None:
        """End the engine, and wait until it has ended."""
        ...


def and_last_line(sentence: str, engine: EngineSource) -> str:
    """Return what is said of the end of an engine that has said nothing of it itself, with the last line of its log."""
    return f"{sentence} Its log ends: {engine.last_line}" if engine.last_line else sentence
