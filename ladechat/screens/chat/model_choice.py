"""The choice of the model, and its system prompt."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ladechat.engine_options import found_anywhere
from ladechat.protocol import Failed
from ladechat.screens.chat.session_screen import STOP_FIRST, SessionScreen
from ladechat.screens.lists.models import ModelsScreen
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.known_models import known_models
from ladechat.session.source import LOADED, NewEngine, State
from ladechat.widgets.formatting import name_of
from ladechat.widgets.presenter import STARTING

STILL_ENDING = "The engine before is still being ended: try again in a moment."
STAYS = "goes on answering."
STILL_LOADING = "goes on loading."
LOADED_INSTEAD = "is loaded instead."

Engines = Callable[[str], NewEngine]
"""Returns the function that creates the engines of a model."""


class ModelChoice(SessionScreen):
    """Changes the model and the system prompt within the same conversation.

    Args:
        model: the first model.
        engines: creates the engines of another model; None: models cannot be changed.
    """

    _store: ConversationStore | None

    def __init__(self, *args: Any, model: str, engines: Engines | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._model = model
        self._engines = engines
        self._used: list[str] = []
        self._failed: set[str] = set()
        self._typed = ""

    def action_model(self, name: str = "") -> None:
        """Use the model of this name; without one, show a list."""
        self._typed = self._command if name else ""
        if name:
            self._use_model(name)
        else:
            list_models = partial(known_models, self._store, tuple(self._used), tuple(self._failed))
            current = "" if self._session.state is State.ENDED else self._model
            self.app.push_screen(ModelsScreen(list_models, current), self._use_model)

    def _use_model(self, name: str | None) -> None:
        if name is None:
            return
        name = found_anywhere(name)
        if name == self._model:
            if self._session.state is State.ENDED and self._session.restart():
                self.view.presenter.say(STARTING)
            return
        if self._engines is None:
            self._refuse("This session has one model only.")
        elif self._session.state in (State.ANSWERING, State.STOPPING):
            self._refuse(STOP_FIRST)
        else:
            self._leave_editing()
            if not self._session.use_model(name, self._engines(name)):
                self._refuse(STILL_ENDING)

    def _show_search(self) -> None:
        self.view.show_search(self._session.looking_for)

    def model_taken(self, model: str, replaced: str) -> None:
        """Report that another model is loaded, or the previous one again."""
        self._model = model
        if self.is_running:
            self.view.presenter.say(STARTING)
            if replaced:
                decoder = self._session.requested.decoder
                self.notify(f"{name_of(model)} is decoded with {decoder} from now on, in the place of {replaced}.")

    def _note_loaded(self, loaded: bool) -> None:
        """Remember that the model was loaded, or that it could not be."""
        if loaded:
            self._failed.discard(self._model)
            self._used.insert(0, self._model)
        elif self._model not in self._used:
            self._failed.add(self._model)

    def model_refused(self, model: str, why: Failed) -> None:
        """Report why a model cannot be used; a name that was typed is put back into the prompt, to be corrected."""
        self._failed.add(model)
        if not self.is_running:
            return
        state = self._session.state
        what = LOADED_INSTEAD if state is State.RESTARTING else STAYS if state in LOADED else STILL_LOADING
        after = "" if state is State.ENDED else f" {name_of(self._model)} {what}"
        self._refuse(f"{why.message} {why.hint}{after}", self._typed, "error")

    def action_system(self, text: str = "") -> None:
        """Set the system prompt from the next question on; without a text, open an editor for it."""
        if text:
            self._session.instruct(text)
        else:
            self.app.push_screen(SystemPromptScreen(self._session.conversation.system), self._take_system)

    def _take_system(self, text: str | None) -> None:
        if text is not None and text != self._session.conversation.system:
            self._session.instruct(text)
