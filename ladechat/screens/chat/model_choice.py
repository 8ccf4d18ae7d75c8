"""The choice of the model, and its system prompt."""

from collections.abc import Callable
from functools import partial

from ladechat.engine_options import found_anywhere
from ladechat.protocol import Failed
from ladechat.screens.chat.context import STOP_FIRST, ChatContext
from ladechat.screens.chat.questions import Questions
from ladechat.screens.lists.models import ModelsScreen, known_models
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.server_address import AddressRefused
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine import LOADED, NewEngine, State
from ladechat.widgets.formatting import name_of
from ladechat.widgets.presenter import STARTING

STILL_ENDING = "The engine before is still being ended: try again in a moment."
STAYS = "goes on answering."
STILL_LOADING = "goes on loading."
OF_THE_COMMAND = "The engine's command has a model of its own: leave, and start with another --engine or without one."
LOADED_INSTEAD = "is loaded instead."

Engines = Callable[[str], NewEngine]
"""Returns the function that creates the engines of a model."""


class ModelChoice:
    """Changes the model and the system prompt within the same conversation. The session tells it what becomes of that.

    Args:
        questions: editing the last one ends when another model is chosen.
        model: the first model.
        engines: creates the engines of another model; None: models cannot be changed.
        store: the saved conversations, which name other models.

    Attributes:
        current: the model that answers, or is being loaded.
        failed: the models that could not be loaded.
    """

    def __init__(
        self,
        chat: ChatContext,
        questions: Questions,
        model: str,
        engines: Engines | None,
        store: ConversationStore | None,
    ) -> None:
        self._chat, self._session, self._questions = chat, chat.session, questions
        self._engines, self._store = engines, store
        self.current = model
        self.failed: set[str] = set()
        self._used: list[str] = []
        self._typed = ""

    def action_model(self, name: str = "") -> None:
        """Use the model of this name; without one, show a list."""
        self._typed = self._chat.command if name else ""
        if self._chat.engine_command:
            self._chat.refuse(OF_THE_COMMAND)
        elif name:
            self._use(name)
        else:
            list_models = partial(known_models, self._store, tuple(self._used), tuple(self.failed))
            current = "" if self._session.state is State.ENDED else self.current
            self._chat.screen.app.push_screen(ModelsScreen(list_models, current), self._use)

    def _use(self, name: str | None) -> None:
        if name is None:
            return
        try:
            name = found_anywhere(name)
        except AddressRefused as refused:
            self._chat.refuse(str(refused))
            return
        if name == self.current:
            if self._session.state is State.ENDED and self._session.restart():
                self._chat.view.presenter.say(STARTING)
            return
        if self._engines is None:
            self._chat.refuse("This session has one model only.")
        elif self._session.state in (State.ANSWERING, State.STOPPING):
            self._chat.refuse(STOP_FIRST)
        else:
            self._questions.action_leave_editing()
            if not self._session.use_model(name, self._engines(name)):
                self._chat.refuse(STILL_ENDING)

    def note_loaded(self, loaded: bool) -> None:
        """Remember that the model was loaded, or that it could not be."""
        if loaded:
            self.failed.discard(self.current)
            self._used.insert(0, self.current)
        elif self.current not in self._used:
            self.failed.add(self.current)

    def model_taken(self, model: str, replaced: str) -> None:
        """Report that another model is loaded, or the previous one again."""
        self.current = model
        if self._chat.screen.is_running:
            self._chat.view.presenter.say(STARTING)
            if replaced:
                decoder = self._session.requested.decoder
                now = f"{name_of(model)} is decoded with {decoder} from now on, in the place of {replaced}."
                self._chat.notify(now)

    def model_refused(self, model: str, why: Failed) -> None:
        """Report why a model cannot be used; a name that was typed is put back into the prompt, to be corrected."""
        self.failed.add(model)
        if not self._chat.screen.is_running:
            return
        state = self._session.state
        what = LOADED_INSTEAD if state is State.RESTARTING else STAYS if state in LOADED else STILL_LOADING
        after = "" if state is State.ENDED else f" {name_of(self.current)} {what}"
        self._chat.refuse(f"{why.message} {why.hint}{after}", self._typed, "error")

    def action_system(self, text: str = "") -> None:
        """Set the system prompt from the next question on; without a text, open an editor for it."""
        if text:
            self._session.instruct(text)
        else:
            editor = SystemPromptScreen(self._session.conversation.system)
            self._chat.screen.app.push_screen(editor, self._take_system)

    def _take_system(self, text: str | None) -> None:
        if text is not None and text != self._session.conversation.system:
            self._session.instruct(text)
