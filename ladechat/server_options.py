"""Options that name a server in the place of a model, and which server the environment's key goes to."""

import os

from msgspec.structs import replace

from ladechat import catalog
from ladechat.engine_options import EngineOptions
from ladechat.refusing import fail
from ladechat.server_address import KEY_BELONGS_TO, KEY_VARIABLE, AddressRefused, ServerAddress, is_server, parted

NO_SERVER = ""
"""No origin: that of no server."""


def place_of(server: str | None, model: str, *, named: bool) -> tuple[str | None, str]:
    """Return the server that runs the model, None for this machine, and the model's name there, "" for its only one.

    An address may stand in the place of the model, as in the settings file. A model that was not `named` with the
    server is that of the settings file, and not the server's.
    """
    if server is None and not is_server(model):
        return None, model
    if server is None:
        server, model = parted(model)
    elif not named:
        model = ""
    try:
        address = ServerAddress.of(server or "")
    except AddressRefused as refused:
        fail(str(refused))
    give_key_to(address.origin)
    return address.api, "" if model == catalog.BUNDLED else model


def give_key_to(origin: str) -> None:
    """Give the environment's key to this server and to no other that is chosen later, unless it was given before.
    Engines inherit that.
    """
    if KEY_VARIABLE in os.environ:
        os.environ.setdefault(KEY_BELONGS_TO, origin)


def on_server(text: str, model: str, engine: EngineOptions) -> EngineOptions:
    """Return the options of an engine for a server, given as its address, and with a model's name after it; without
    one it is `model`, "" for the server's only one. The sampling settings are those of `engine`.
    """
    server, own = place_of(None, text, named=True)
    if server is None:
        fail(f"{text!r} is no address of a server; one is like http://localhost:8000/v1.")
    settings = replace(engine.settings, decoder=catalog.SERVER.name, parameters={})
    return EngineOptions(model=own or model, server=server, settings=settings)


def check_runs_here(model: str, command: str) -> None:
    """Refuse a server in the place of a model, for a command that compares decoders."""
    if is_server(model):
        fail(
            f"{command} measures the decoders of this program, and a server decodes as it was started; for servers "
            "there are ladechat bench --server URL and ladechat race --server URL."
        )
