"""GGUF files in a session with real engines: killed, started again, changed for a folder and back, raced."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as Kind

from ladechat.engine.service import Service
from ladechat.protocol import Event, Message, Ready, Settings, Step, TurnFinished
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.engine import State
from ladechat.session.session import Session
from tests.checkpoints import load_on_cpu, save_tiny
from tests.engine.asking import ask, end_of, of_kind
from tests.packed import tiny_file
from tests.session.forked_engine import ForkedEngine
from tests.waiting import until

LENGTH = 12
PLAIN = Settings(decoder="autoregressive")


class Chat:
    """A session whose engines are processes with models from the disk."""

    def __init__(self, model: Path) -> None:
        self.engines: list[ForkedEngine] = []
        self.events: list[Event] = []
        conversation = Conversation(max_new_tokens=LENGTH, model=str(model))
        self.session = Session(partial(self._new_engine, model), Settings(decoder="lookahead"), conversation)
        self.session.show = self.events.extend
        self.session.start()

    def _new_engine(self, model: Path, settings: Settings) -> ForkedEngine:
        self.engines.append(ForkedEngine(model, settings))
        return self.engines[-1]

    async def until(self, true: Callable[[], object]) -> None:
        """Let the engine and the session work until this is true."""

        def holds() -> object:
            self.session.frame()
            return true()

        await until(holds, shows=lambda: self.events[-3:])

    async def ready(self) -> None:
        await self.until(lambda: self.session.state is State.READY)

    async def use(self, model: Path) -> None:
        """Change the model, and wait until it is there."""
        loaded = len(of_kind(self.events, Ready))
        assert self.session.use_model(str(model), partial(self._new_engine, model))
        await self.until(lambda: len(of_kind(self.events, Ready)) > loaded)
        await self.ready()

    async def answer(self, question: str) -> list[int]:
        """Ask, and return the tokens of the answer."""
        answered = len(of_kind(self.events, TurnFinished))
        self.session.ask(question)
        await self.until(lambda: len(of_kind(self.events, TurnFinished)) > answered)
        return of_kind(self.events, TurnFinished)[-1].token_ids

    def plainly(self, model: Path, question: str) -> list[int]:
        """What a fresh engine of this model writes after this conversation by plain decoding."""
        service = Service.of(load_on_cpu(model, "auto"), PLAIN)
        messages: list[Message | str] = [*self.session.conversation.messages, question]
        return end_of(ask(service, *messages, max_new_tokens=LENGTH)).token_ids


@pytest.fixture
def packed() -> Path:
    return tiny_file(1, kind=Kind.Q8_0)


async def test_a_packed_model_that_is_killed_while_it_answers_is_started_again_and_the_conversation_goes_on(
    packed: Path,
) -> None:
    chat = Chat(packed)
    await chat.ready()
    await chat.answer("One?")
    chat.session.set_pace(chat.session.pace.pause(True))
    steps = len(of_kind(chat.events, Step))
    chat.session.ask("Two?")
    await chat.until(lambda: chat.session.state is State.ANSWERING)
    chat.session.take_step()
    await chat.until(lambda: len(of_kind(chat.events, Step)) > steps)
    chat.engines[0].kill()
    await chat.until(lambda: chat.session.state is State.ENDED)
    assert chat.session.restart()
    await chat.ready()
    expected = chat.plainly(packed, "Two?")
    assert await chat.answer("Two?") == expected
    await chat.session.close()


async def test_a_conversation_goes_on_from_a_packed_model_to_a_folder_and_back_and_races_in_between(
    packed: Path, tmp_path: Path
) -> None:
    folder = save_tiny(tmp_path / "folder")
    chat = Chat(packed)
    await chat.ready()
    await chat.answer("One?")
    for model, question in ((folder, "Two?"), (packed, "Three?")):
        await chat.use(model)
        expected = chat.plainly(model, question)
        assert await chat.answer(question) == expected
        race = chat.session.race("Which?")
        assert race is not None
        running = asyncio.create_task(race.run())
        await chat.until(running.done)
        texts = [lane.finished.token_ids for lane in race.lanes if lane.finished is not None]
        assert len(texts) == len(race.lanes) > 1 and all(text == texts[0] for text in texts)
    assert [ready.device.endswith("(llama.cpp)") for ready in of_kind(chat.events, Ready)] == [True, False, True]
    await chat.session.close()
