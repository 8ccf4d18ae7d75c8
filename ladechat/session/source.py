"""What the UI needs of an engine: a live one, one far away, or a file, is all the same to it."""

from collections.abc import AsyncIterator
from typing import Protocol

from ladechat.protocol import Command, Event


class EngineSource(Protocol):
    """A source of events that may take commands."""

    async def start(self) -> None:
        """Begin. Events come from now on, and commands are taken, those for a model that still loads too."""
        ...

    async def send(self, command: Command) -> None:
        """Pass a command on. One that comes after the end is dropped."""
        ...

    def ask_where(self) -> None:
        """Have what says nothing write down where it is, for whoever looks for the reason."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """What is said, until the end."""
        ...

    async def close(self) -> None:
        """End it, and wait until it has ended."""
        ...
