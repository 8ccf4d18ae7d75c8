"""The interfaces between a session and the screen that shows it."""

from collections.abc import Sequence
from typing import Protocol

from ladechat.protocol import Event, Failed


class Listener(Protocol):
    """The methods that a session calls on a screen."""

    def show(self, events: Sequence[Event]) -> None:
        """Draw events, in their order."""
        ...

    def give_back(self, question: str, *, replacing: bool) -> None:
        """Offer the user a question that got no answer: as a new one, or in place of the last one."""
        ...

    def recording_failed(self, error: OSError) -> None:
        """Report that the recording has ended early."""
        ...


class ModelListener(Protocol):
    """The methods that a session calls on a screen for choosing models."""

    def model_taken(self, model: str, replaced: str) -> None:
        """Report that another model answers from now on, and which decoder was replaced for it, "" if none was."""
        ...

    def model_refused(self, model: str, why: Failed) -> None:
        """Report that a model cannot be used, and that the previous one continues."""
        ...
