"""Which model answers, and what it is told first."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ladechat.protocol import Event, Failed, Ready
from ladechat.screens.models import ModelsScreen
from ladechat.screens.session_screen import STOP_FIRST, SessionScreen
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.session.conversation_store import ConversationStore
from ladechat.session.engine_session import NewEngine
from ladechat.session.known_models import known_models
from ladechat.session.state import State
from ladechat.widgets.presenter import STARTING

Engines = Callable[[str], NewEngine]
"""What makes the engines of a model."""


class ModelChoice(SessionScreen):
    """Another model in the same conversation, and another system prompt.

    Args:
        model: the first one.
        engines: makes the engines of another one; None makes none.
    """

    _store: ConversationStore | None

    def __init__(self, *args: Any, model: str, engines: Engines | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._model = model
        self._engines = engines
        self._used = [model]
        self._model_before = ""

    def action_model(self, name: str = "") -> None:
        """Use the model of this name; without one, show a list."""
        if name:
            self._use_model(name)
        else:
            list_models = partial(known_models, self._store, tuple(self._used))
            self.app.push_screen(ModelsScreen(list_models, self._model), self._use_model)

    def _use_model(self, name: str | None) -> None:
        if name is None or name == self._model:
            return
        if self._engines is None:
            self.notify("This session has one model only.", severity="warning")
        elif self._session.state in (State.ANSWERING, State.STOPPING):
            self.notify(STOP_FIRST, severity="warning")
        else:
            decoder = self._session.wished.decoder
            if self._session.use_model(name, self._engines(name)):
                self._model_before, self._model = self._model, name
                self._used.insert(0, name)
                self.view.presenter.say(STARTING)
            if self._session.wished.decoder != decoder:
                self.notify(f"{decoder} is not for every model: {self._session.wished.decoder} decodes from now on.")

    def _follow_loading(self, event: Event) -> None:
        """Offer the way back where a model that was chosen here cannot be loaded."""
        if isinstance(event, Ready):
            self._model_before = ""
        elif isinstance(event, Failed) and event.fatal and self._model_before:
            self._prompt.offer_command(f"/model {self._model_before}")
            self.notify(f"Enter goes back to {self._model_before}; /model takes another.", severity="warning")
            self._model_before = ""

    def action_system(self, text: str = "") -> None:
        """Have the model behave as a text says, from the next question on; without one, show the text to be edited."""
        if text:
            self._session.instruct(text)
        else:
            self.app.push_screen(SystemPromptScreen(self._session.conversation.system), self._take_system)

    def _take_system(self, text: str | None) -> None:
        if text is not None and text != self._session.conversation.system:
            self._session.instruct(text)
