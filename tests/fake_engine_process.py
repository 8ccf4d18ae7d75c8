"""`ladechat` as a process, with a `FakeEngine` as its engine, which is one too: signals and pipes without torch.

    python -m tests.fake_engine_process HELD ask "What is it?" --json

HELD is where the engine waits: "nowhere", "loading", or so many steps of each answer, after which it goes on when it is
stopped.
"""

import asyncio
import sys

from ladechat.engine_options import EngineOptions
from ladechat.protocol import Settings, decode_command, encode
from ladechat.shell.cli import main
from tests.fake_engine import FakeEngine

ENGINE = "engine"


async def serve(held: str) -> None:
    """Speak the protocol over the standard streams, until the input ends."""
    engine = FakeEngine(Settings(decoder="lookahead"), hold_loading=held == "loading", hold_steps=held.isdecimal())
    await engine.start()
    if held.isdecimal():
        engine.release(int(held))
    talking = asyncio.create_task(talk(engine))
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        if (command := decode_command(line)) is not None:
            await engine.send(command)
    await engine.close()
    await talking


async def talk(engine: FakeEngine) -> None:
    async for event in engine.events():
        sys.stdout.buffer.write(encode(event))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    held, *arguments = sys.argv[1:]
    if arguments == [ENGINE]:
        asyncio.run(serve(held))
    else:
        program = [sys.executable, "-m", "tests.fake_engine_process", held, ENGINE]
        EngineOptions.command = lambda options: program  # type: ignore[assignment, method-assign]
        sys.argv[1:] = arguments
        main()
