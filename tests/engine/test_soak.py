"""Hours of chatting: memory stays flat, no descriptor is lost, and every text is that of plain decoding.

`make test-full` chats for some minutes; `make soak` for an hour, or for as long as `LADECHAT_SOAK_MINUTES` says.
"""

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from ladechat import catalog
from ladechat.protocol import Configure, Message, Ready, Step, Stop, TurnFinished, TurnStarted, Value
from tests.engine.wire import Wire
from tests.growth import descriptors, growth_in_an_hour, most_growth_in_an_hour, private_bytes, said_of
from tests.made_up_maps import save_made_up
from tests.soaking import MINUTES, QUESTIONS, RUNS_LONG, is_warm
from tests.tiny import DEMO

CHECKED = 8
"""One turn of this many is asked again of plain decoding."""
pytestmark = RUNS_LONG


@dataclass
class Chat:
    """A user who asks, stops, changes settings in mid-answer, and begins new conversations, all by seeded dice."""

    wire: Wire
    dice: random.Random
    messages: list[Message] = field(default_factory=list)
    checks: int = 0

    def turn(self) -> None:
        """One question and its answer, or a part of it; now and then the same of plain decoding."""
        dice = self.dice
        if dice.random() < 0.15:
            self.messages.clear()
        self.configure(dice.choice((0.0, 0.0, 0.7, 1.2)))
        self.messages.append(Message(role="user", content=dice.choice(QUESTIONS)))
        length = dice.randint(1, 150)
        number = self.wire.generate(*self.messages, max_new_tokens=length)
        begun = self.wire.until(TurnStarted, lambda event: event.turn == number)
        if dice.random() < 0.3:
            self.disturb()
        _, end = self.wire.finish(number)
        if dice.randrange(CHECKED) == 0:
            self.check(begun, end, length)
        self.messages.append(Message(role="assistant", content=end.text, token_ids=end.token_ids))
        self.wire.seen.clear()

    def configure(self, temperature: float) -> None:
        """Another decoder now and then, and other parameters."""
        dice = self.dice
        info = dice.choice([catalog.DECODERS["auto"], *catalog.DECODERS.values()])
        parameters: dict[str, Value] = {}
        for one in info.parameters:
            switch = isinstance(one.default, bool)
            parameters[one.name] = dice.random() < 0.7 if switch else dice.randint(one.least, min(one.most, 9))
        seed = dice.randrange(10**6, 2 * 10**6)
        self.wire.send(Configure(decoder=info.name, parameters=parameters, temperature=temperature, seed=seed))

    def disturb(self) -> None:
        """After a step, stop the answer, or change the decoder while it is being written."""
        self.wire.until(Step)
        if self.dice.random() < 0.5:
            self.wire.send(Stop())
        else:
            self.wire.send(Configure(decoder=self.dice.choice(list(catalog.DECODERS))))

    def check(self, begun: TurnStarted, end: TurnFinished, length: int) -> None:
        """Plain decoding with the same random numbers writes the same, and as far as it was written at all."""
        assert begun.seed is not None
        seed = begun.seed - begun.turn  # the engine adds the number of the turn, less one
        self.wire.send(Configure(decoder="autoregressive", seed=seed))
        _, plain = self.wire.ask(*begun.messages, max_new_tokens=length)
        assert plain.token_ids[: len(end.token_ids)] == end.token_ids
        assert end.reason == "stopped" or plain.token_ids == end.token_ids
        self.checks += 1


def test_hours_of_chatting_take_no_more_memory_and_change_no_token(tmp_path: Path) -> None:
    maps = [word for file in save_made_up(DEMO, tmp_path) for word in ("--maps", str(file))]
    wire = Wire("--model", "demo", "--auto", *maps, program=("-m", "tests.engine.small_memories", "engine"))
    wire.until(Ready)
    try:
        chat = Chat(wire, random.Random(0))
        began, turns = time.monotonic(), 0
        while not is_warm(began, turns):
            chat.turn()
            turns += 1
        memory, files = [], []
        began = time.monotonic()
        while time.monotonic() - began < 60 * MINUTES:
            chat.turn()
            memory.append((time.monotonic() - began, private_bytes(wire.process.pid)))
            files.append(descriptors(wire.process.pid))
        print(f"engine: {len(memory)} turns, {chat.checks} checked, {said_of(memory)}, {files[-1]} files")
        assert growth_in_an_hour(memory) <= most_growth_in_an_hour(memory), said_of(memory)
        assert set(files) == {files[0]}
        assert chat.checks
    finally:
        wire.close()
