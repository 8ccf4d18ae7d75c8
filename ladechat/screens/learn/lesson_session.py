"""The session of the lessons: an engine of their own, with the bundled model."""

from dataclasses import replace

from ladechat.catalog import BUNDLED
from ladechat.engine_options import EngineOptions
from ladechat.protocol import Settings
from ladechat.session.conversations.conversation import SingleQuestions
from ladechat.session.live import LiveEngine
from ladechat.session.session import Session

MOST_NEW_TOKENS = 64


def lesson_session() -> Session:
    """Return a session for the lessons, with the bundled model, whatever model the chat uses."""

    def new_engine(settings: Settings) -> LiveEngine:
        return LiveEngine(replace(EngineOptions(model=BUNDLED), settings=settings).command())

    questions = SingleQuestions(max_new_tokens=MOST_NEW_TOKENS, model=BUNDLED)
    return Session(new_engine, Settings(decoder="autoregressive"), questions)
