"""Finds out which program answers at an address, and which model is to answer there."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ladechat.protocol import MOST
from ladechat.remote.connection import Connection
from ladechat.remote.dialects.dialect import Dialect
from ladechat.remote.dialects.llama_cpp import LlamaCpp
from ladechat.remote.dialects.openai import OpenAI
from ladechat.remote.dialects.sglang import SGLang
from ladechat.remote.dialects.vllm import VLLM
from ladechat.remote.faults import NotThere, ServerFault, StillLoading
from ladechat.remote.json_values import at, count_at, list_at, text_at

MOST_LISTED = 12
"""The models that a sentence names."""
UNKNOWN = "OpenAI-compatible server"


@dataclass(frozen=True)
class Program:
    """A program that serves models: what people call it, its version ("" if unknown), and how it is asked."""

    name: str
    version: str
    dialect: Dialect

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


class Known(NamedTuple):
    """How a program is recognised.

    Attributes:
        owners: what it says to be the owner of its models.
        only_there: a path that no other has, and a key of what is there; None: its models always say the owner.
        version: the same of its version.
    """

    name: str
    owners: tuple[str, ...]
    only_there: tuple[str, str] | None
    version: tuple[str, str]
    dialect: Dialect


PROGRAMS = (
    Known("vLLM", ("vllm",), None, ("/version", "version"), VLLM()),
    Known("SGLang", ("sglang",), ("/get_model_info", "model_path"), ("/get_server_info", "version"), SGLang()),
    Known("llama.cpp", ("llamacpp",), ("/props", "build_info"), ("/props", "build_info"), LlamaCpp()),
    Known("Ollama", ("library",), ("/api/version", "version"), ("/api/version", "version"), OpenAI()),
    Known("LM Studio", ("organization_owner",), ("/api/v0/models", "object"), ("/api/v0/models", "version"), OpenAI()),
)


@dataclass(frozen=True)
class Model:
    """A model that a server has.

    Attributes:
        owner: who has it, as the server says.
        context_length: tokens of prompt and answer together; `MOST` if the server does not tell.
        parameters, vocabulary: their numbers; 0 if the server does not tell.
    """

    name: str
    owner: str
    context_length: int = MOST
    parameters: int = 0
    vocabulary: int = 0


async def models_of(connection: Connection) -> list[Model]:
    """Return the models of a server.

    Raises:
        ServerFault: it has no such list, or cannot be reached.
    """
    listed = await connection.fetch(f"{connection.address.api}/models")
    models = [_model(one) for one in list_at(listed, "data") if text_at(one, "id")]
    if not models and not isinstance(at(listed, "data"), list):
        hint = "The address of an OpenAI-compatible server mostly ends in /v1."
        raise NotThere(f"{connection.address.api} has no list of models.", hint, "load_failed")
    return models


def _model(listed: Any) -> Model:
    lengths = (("max_model_len",), ("meta", "n_ctx"), ("context_length",), ("context_window",))
    known = next((length for path in lengths if (length := count_at(listed, *path))), MOST)
    return Model(
        name=text_at(listed, "id"),
        owner=text_at(listed, "owned_by"),
        context_length=known,
        parameters=count_at(listed, "meta", "n_params") or 0,
        vocabulary=count_at(listed, "meta", "n_vocab") or 0,
    )


def chosen(models: Sequence[Model], name: str, host: str) -> Model:
    """Return the model of a name, or without one the only model.

    Raises:
        ServerFault: there is none of that name, or several and none was named.
    """
    if not models:
        raise ServerFault(f"{host} has no model.", "Load one there first.", "model_not_found")
    listed = ", ".join(one.name for one in models[:MOST_LISTED])
    listed += f" and {len(models) - MOST_LISTED} more" if len(models) > MOST_LISTED else ""
    if not name:
        if len(models) > 1:
            raise ServerFault(
                f"{host} has {len(models)} models: {listed}.", "Name one of them with --model.", "model_not_found"
            )
        return models[0]
    found = next((one for one in models if one.name == name), None)
    if found is None:
        raise ServerFault(f"{host} has no model {name!r}; it has {listed}.", "Take one of them.", "model_not_found")
    return found


async def program_of(connection: Connection, model: Model) -> Program:
    """Return the program that serves a model, by what it says of its models, or by the paths that only it has."""
    owner = model.owner.casefold()
    for program in PROGRAMS:
        if owner in program.owners:
            return Program(program.name, await _text(connection, program.version), program.dialect)
    for program in PROGRAMS:
        if program.only_there is not None and await _text(connection, program.only_there):
            return Program(program.name, await _text(connection, program.version), program.dialect)
    return Program(UNKNOWN, "", OpenAI())


async def context_of(connection: Connection, program: Program, model: Model) -> int:
    """Return the context length that holds for a conversation, `MOST` if the server does not tell."""
    if program.name == "llama.cpp":  # what it lists is the model's; a conversation has one slot of several
        with contextlib.suppress(ServerFault):
            facts = await connection.fetch(f"{connection.address.root}/props")
            return count_at(facts, "default_generation_settings", "n_ctx") or model.context_length
    return model.context_length


async def _text(connection: Connection, place: tuple[str, str]) -> str:
    """Return a text that is at a path of the server, or "" where it has none: not having it tells as much."""
    path, key = place
    try:
        return text_at(await connection.fetch(connection.address.root + path), key)
    except StillLoading:
        raise
    except ServerFault:
        return ""
