"""The engine process for a model on a server: it finds the server, says what it is, and answers by it."""

import asyncio
import threading
import time
import traceback

import msgspec

from ladechat import catalog
from ladechat.engine_options import EngineOptions
from ladechat.engine_process.opening import begin_stream
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.protocol import Loading, Ready, ServerInfo, Settings
from ladechat.remote.connection import Connection
from ladechat.remote.engine import Happening, RemoteEngine, Served
from ladechat.remote.faults import ServerFault, StillLoading
from ladechat.remote.finding import Model, chosen, context_of, models_of, program_of
from ladechat.remote.key import Key, key_for
from ladechat.server_address import AddressRefused, ServerAddress

SECONDS_BETWEEN_TRIES = 1.0
"""How often a server is asked whether its model is loaded."""
CHAT_FORMAT = "the server's"


def serve(options: EngineOptions) -> int:
    """Answer commands by a server until the input ends.

    Returns:
        The exit code: 1 if the server cannot be used.
    """
    stream, inbox = begin_stream(options)
    try:
        return asyncio.run(_serve(options, stream, inbox))
    except Exception as error:  # the stream says so before the process ends
        traceback.print_exc()
        what = f"Something went wrong that should not have: {type(error).__name__}."
        stream.emit(ServerFault(what, "The engine's log has the details.").event(fatal=True))
        return 1


async def _serve(options: EngineOptions, stream: EventStream, inbox: Inbox) -> int:
    happenings: asyncio.Queue[Happening] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def pass_on() -> None:
        while True:
            loop.call_soon_threadsafe(happenings.put_nowait, inbox.wait())

    threading.Thread(target=pass_on, name="commands to the loop", daemon=True).start()
    settings = msgspec.structs.replace(options.settings, decoder=catalog.SERVER.name, parameters={})
    began = time.monotonic()
    try:
        address = ServerAddress.of(options.server or "")
        key = key_for(address)
        served, model = await _found(Connection(address, key), options.model, stream)
    except AddressRefused as error:
        stream.emit(ServerFault(str(error), "docs/server.md has examples.", "load_failed").event(fatal=True))
        return 1
    except ServerFault as fault:
        stream.emit(fault.event(fatal=True))
        return 1
    stream.emit(_ready(served, model, key, settings, time.monotonic() - began))
    await RemoteEngine(served, settings, stream, happenings).run()
    return 0


async def _found(connection: Connection, name: str, stream: EventStream) -> tuple[Served, Model]:
    """Find out what answers at an address; while it loads its model, wait for it."""
    doing = f"asking {connection.address.host}"
    while True:
        stream.emit(Loading(stage=1, stages=1, doing=doing))
        try:
            model = chosen(await models_of(connection), name, connection.address.host)
            program = await program_of(connection, model)
            context_length = await context_of(connection, program, model)
        except StillLoading:
            doing = f"{connection.address.host} loads its model"
            await asyncio.sleep(SECONDS_BETWEEN_TRIES)
        else:
            connection.model = model.name
            return Served(connection, program, model.name, context_length), model


def _ready(served: Served, model: Model, key: Key, settings: Settings, seconds: float) -> Ready:
    """Return the facts about a model on a server, as far as it tells them."""
    address, dialect = served.connection.address, served.program.dialect
    notices = [] if address.is_private or not key else [f"The key goes to {address.host} unencrypted: it has no https."]
    return Ready(
        model=model.name,
        model_type="",
        tokenizer="",
        parameters=model.parameters,
        layers=0,
        vocabulary=model.vocabulary,
        context_length=served.context_length,
        device=f"{served.program} at {address.host}",
        dtype="",
        chat_template=CHAT_FORMAT,
        eos_ids=[],
        load_seconds=seconds,
        settings=settings,
        decoders=[catalog.SERVER],
        notices=notices,
        server=ServerInfo(
            program=str(served.program),
            address=address.api,
            passes=dialect.passes,
            token_ids=dialect.token_ids,
            logprobs=dialect.logprobs,
        ),
        thinking=True,  # whether the model's template knows it, no server tells
    )
