"""What a session needs of the screen that shows it."""

from collections.abc import Sequence
from typing import Protocol

from ladechat.protocol import Event, Failed


class Listener(Protocol):
    """What a session needs of a screen."""

    def show(self, events: Sequence[Event]) -> None:
        """Draw events, in their order."""
        ...

    def give_back(self, question: str, *, replacing: bool) -> None:
        """Offer the user a question that got no answer: another one, or in the place of the last."""
        ...

    def recording_failed(self, error: OSError) -> None:
        """Say that the recording has ended early."""
        ...


class ModelListener(Protocol):
    """What a session needs of a screen where models are chosen."""

    def model_taken(self, model: str, replaced: str) -> None:
        """Say that another model answers from now on, and which decoder was replaced for it, "" if none was."""
        ...

    def model_refused(self, model: str, why: Failed) -> None:
        """Say that a model cannot be had, and that the one that answered goes on."""
        ...
