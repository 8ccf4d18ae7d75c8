"""The UI's interface to an engine. Local, remote and scripted engines look the same to it."""

from collections.abc import AsyncIterator
from typing import Protocol

from ladechat.protocol import Command, Event


class EngineSource(Protocol):
    """A source of events that takes commands."""

    @property
    def last_line(self) -> str:
        """The last line of its log, which is complete after `close`; "" if there is none."""
        ...

    async def start(self) -> None:
        """Start the engine. From now on it sends events and accepts commands, also while the model loads."""
        ...

    async def send(self, command: Command) -> None:
        """Send a command. Commands after the engine's end are dropped."""
        ...

    def dump_stacks(self) -> None:
        """Ask a stuck engine to write its thread stacks into its log."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Yield the engine's events, until it ends."""
        ...

    async def close(self) -> None:
        """End the engine, and wait until it has ended."""
        ...


def and_last_line(sentence: str, engine: EngineSource) -> str:
    """Return a sentence for the end of an engine that gave no reason, with the last line of its log."""
    return f"{sentence} Its log ends: {engine.last_line}" if engine.last_line else sentence
