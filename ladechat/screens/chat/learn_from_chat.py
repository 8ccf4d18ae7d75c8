"""The way from the chat to the lessons, and back."""

from dataclasses import replace

from textual.app import SystemCommand

from ladechat.catalog import BUNDLED
from ladechat.engine_options import EngineOptions
from ladechat.lessons.progress import ProgressFile
from ladechat.protocol import Settings
from ladechat.screens.chat.session_screen import STOP_FIRST, SessionScreen
from ladechat.screens.learn.screen import MOST_NEW_TOKENS, LearnScreen
from ladechat.session.conversations.conversation import SingleQuestions
from ladechat.session.engine_session import EngineSession
from ladechat.session.live import LiveEngine


def lesson_session() -> EngineSession:
    """Return a session for the lessons, with the bundled model, whatever model the chat uses."""

    def new_engine(settings: Settings) -> LiveEngine:
        return LiveEngine(replace(EngineOptions(model=BUNDLED), settings=settings).command())

    return EngineSession(
        new_engine, Settings(decoder="autoregressive"), SingleQuestions(max_new_tokens=MOST_NEW_TOKENS, model=BUNDLED)
    )


class LearnFromChat(SessionScreen):
    """Opens the lessons over the chat, which stays as it is."""

    def learn_command(self) -> SystemCommand:
        """Return the command of the palette that opens the lessons."""
        text = "Seven scenes of a minute, with the bundled model; as ladechat learn. The chat stays as it is."
        return SystemCommand("Learn how it works", text, self.action_learn)

    def action_learn(self) -> None:
        """Continue the lessons."""
        if self._session.asking:
            self._refuse(STOP_FIRST)
            return
        file = ProgressFile()
        progress, notice = file.read()
        self.app.push_screen(LearnScreen(lesson_session(), progress, file, notice))
