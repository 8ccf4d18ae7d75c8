"""Hours of chatting: memory stays flat, no descriptor is lost, and every text is that of plain decoding.

`make test-full` chats for some minutes; `make soak` for an hour, or for as long as `LADECHAT_SOAK_MINUTES` says.
"""

import os
import random
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ladechat import catalog
from ladechat.protocol import Configure, Message, Step, Stop, TurnFinished, TurnStarted, Value
from tests.engine.wire import Wire, started
from tests.made_up_maps import save_made_up
from tests.tiny import DEMO

MINUTES = float(os.environ.get("LADECHAT_SOAK_MINUTES", "2"))
"""How long the engine is watched, after the warm-up."""
WARM_UP_MINUTES = min(5.0, MINUTES)
"""At least so long; and until the pool of n-grams is full, which grows up to a limit."""
FLAT = 1.02
CHECKED = 8
"""One turn of this many is asked again of plain decoding."""
QUESTIONS = (
    "What is the n-gram pool?",
    "How do I choose W, N and G?",
    "Write a Python function that reverses a string.",
    "Count to twenty.",
    "Tell me a story about a cat.",
    "Why? Tell me more.",
    "日本語 🙂 e\u0301 \u202e \x1b[31m",
    "Repeat: the cat sat on the mat and the cat sat on the mat.",
)
pytestmark = pytest.mark.full


@dataclass
class Chat:
    """A user who asks, stops, changes settings in mid-answer, and begins new conversations, all by seeded dice."""

    wire: Wire
    dice: random.Random
    messages: list[Message] = field(default_factory=list)
    checks: int = 0
    pool_size: int = 0

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
        pools = [step.pool for step in self.wire.of_turn(Step, number) if step.pool is not None]
        self.pool_size = pools[-1].ngrams if pools else self.pool_size
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


def resident_bytes(process: int) -> int:
    """The memory of a process, without what it shares with others."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private"))


def descriptors(process: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


@pytest.mark.timeout(60 * (MINUTES + WARM_UP_MINUTES) + 1800)
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc")
def test_hours_of_chatting_take_no_more_memory_and_change_no_token(tmp_path: Path) -> None:
    maps = [word for file in save_made_up(DEMO, tmp_path) for word in ("--maps", str(file))]
    wire, _ = started("--model", "demo", "--auto", *maps)
    try:
        chat = Chat(wire, random.Random(0))
        began, largest = time.monotonic(), -1
        while time.monotonic() - began < 60 * WARM_UP_MINUTES or chat.pool_size > 1.01 * largest:
            largest = max(largest, chat.pool_size)
            for _ in range(20):
                chat.turn()
        memory, files = [], []
        began = time.monotonic()
        while time.monotonic() - began < 60 * MINUTES:
            chat.turn()
            memory.append(resident_bytes(wire.process.pid))
            files.append(descriptors(wire.process.pid))
        tenth = max(1, len(memory) // 10)
        print(f"{len(memory)} turns, {chat.checks} checked, {memory[0]:,} to {memory[-1]:,} bytes, {files[-1]} files")
        assert statistics.median(memory[-tenth:]) <= FLAT * statistics.median(memory[:tenth])
        assert set(files) == {files[0]}
        assert chat.checks
    finally:
        wire.close()
