"""The session of the lessons: an engine of their own, with the bundled model."""

from dataclasses import replace

from ladechat.catalog import BUNDLED
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Settings
from ladechat.session.conversations.conversation import SingleQuestions
from ladechat.session.engine_session import EngineSession
from ladechat.session.live import LiveEngine

MOST_NEW_TOKENS = 64


def lesson_session() -> EngineSession:
    """Return a session for the lessons, with the bundled model, whatever model the chat uses."""

    def new_engine(settings: Settings) -> LiveEngine:
        return LiveEngine(replace(EngineOptions(model=BUNDLED), settings=settings).command())

    questions = SingleQuestions(max_new_tokens=MOST_NEW_TOKENS, model=BUNDLED)
    return EngineSession(new_engine, Settings(decoder="autoregressive"), questions)
