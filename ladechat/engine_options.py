"""The options of an engine, and its command line. Each option is described once, here.

An engine may be any command that speaks the protocol. This module knows the command line of ladechat's own engine;
`ladechat.session.live` runs that, `ladechat.session.command_engine` a command of the user's.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict

from ladechat import catalog
from ladechat.engine_command import EngineCommand
from ladechat.protocol import Configure, SamplingSettings, Settings, Value
from ladechat.server_address import ServerAddress, is_server, named, parted

Model = Annotated[
    str, typer.Option("--model", "-m", help="A folder, a GGUF file, a hub id, or demo, the bundled model.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps …; auto takes a GPU if there is one.")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16, float16; auto: what is fast there.")]

Pool = Annotated[str | None, typer.Option(metavar="FILE", help="Keep the n-gram pool in a file, for the next session.")]

Maps = Annotated[
    list[str] | None,
    typer.Option(
        "--maps",
        metavar="FILE",
        help="What was trained for the model: for hidden transfer, or for Medusa. Give it again for the other.",
        show_default="beside the model, or in the data folder",
    ),
]

WarmStart = Annotated[
    bool | None,
    typer.Option(
        help="Draft from this model's earlier answers too, and keep new ones for that.",
        show_default="on in the chat, unless --no-save is given",
    ),
]

LayerSearch = Annotated[
    float,
    typer.Option(
        "--layer-search",
        metavar="SECONDS",
        help="Search so long for the layers that layer_skip does best to skip here, and keep them; 0: do not.",
    ),
]

TensorParallel = Annotated[
    int, typer.Option("--tensor-parallel", metavar="GPUS", help="Share a model too large for one GPU among several.")
]

LookaheadParallel = Annotated[
    int,
    typer.Option(
        "--lookahead-parallel",
        metavar="GPUS",
        help="Share each pass among several GPUs that hold the whole model each.",
    ),
]

QUANTIZATIONS = ("int8", "int4")
Quantize = Annotated[
    str | None,
    typer.Option(
        metavar="int8|int4", help="Quantise the weights: less memory, faster on a CPU; int4 needs a CPU or a CUDA GPU."
    ),
]

WAYS_OF_PASSES = ("auto", "exact", "fast")
Passes = Annotated[
    str,
    typer.Option(
        metavar="auto|exact|fast",
        help="Passes of a GGUF file: exact, in which drafts never change the text; fast, where near ties may; "
        "auto: exact, unless that takes 10 % longer or more.",
    ),
]

Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A server that runs the model: vLLM, SGLang, llama.cpp's, or any with an OpenAI API; --model names one "
        "of its models.",
    ),
]


SAMPLING = SamplingSettings.__struct_fields__
NO_OPTIONS = ("settings", "engine_command")
"""The fields of `EngineOptions` that are no options of `ladechat engine` themselves."""


@dataclass(frozen=True)
class EngineOptions:
    """The model, its device and dtype, and the first settings.

    Each field but the last two is an option of the commands that start an engine, and of `ladechat engine` itself,
    which receives it by `arguments`; what it does is its help above. The model of a server may be "", for its only one.

    Attributes:
        settings: the decoder, the given values of its parameters, and the sampling settings.
        engine_command: the user's command that is the engine, with options of its own; None: an engine of this machine.
    """

    model: Model = "demo"
    device: Device = "auto"
    dtype: Dtype = "auto"
    quantize: Quantize = None
    pool: Pool = None
    maps: Maps = None
    warm_start: WarmStart = None
    layer_search: LayerSearch = 0.0
    tensor_parallel: TensorParallel = 1
    lookahead_parallel: LookaheadParallel = 1
    passes: Passes = "auto"
    server: Server = None
    settings: Settings = field(default_factory=Settings)
    engine_command: EngineCommand | None = None

    def with_settings(self, settings: Settings) -> "EngineOptions":
        """Return the options of the next engine, which starts with the settings that the user has requested by now."""
        command = self.engine_command
        if command is not None and settings != self.settings:
            command = replace(command, change=Configure(**asdict(settings)))
        return replace(self, settings=settings, engine_command=command)

    def command(self) -> list[str]:
        """Return the command line of such an engine, with the present Python interpreter.

        `-P` keeps the working directory off `sys.path`: else a file named torch.py in a model's folder would be run.
        """
        return [sys.executable, "-P", "-m", "ladechat", "engine", *self.arguments()]

    @property
    def processes(self) -> int:
        """The number of processes that compute with the model."""
        return max(self.tensor_parallel, self.lookahead_parallel)

    @property
    def named(self) -> str:
        """The name by which conversations and lists know the model: that of a server comes with its address."""
        return named(self.server, self.model)

    def with_model(self, name: str) -> "EngineOptions":
        """Return the same with another model, by its name as in `named`. The files of this one do not fit it."""
        server, model = parted(name)
        return replace(self, server=server, model=model, pool=None, maps=None)

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of `ladechat engine`, or of another command with these options: to a server or a command,
        only those that it has to do with.
        """
        given: Settings | Configure = self.settings
        if self.engine_command is not None:
            given = self.engine_command.change
            yield from _option("engine", self.engine_command.text)
        elif self.server is not None:
            given = Configure(**{name: getattr(given, name) for name in SAMPLING})
            yield from _option("server", self.server)
            yield from _option("model", self.model or None)
        else:
            for one in fields(self):
                if one.name not in NO_OPTIONS:
                    yield from _option(one.name, getattr(self, one.name))
        known = catalog.parameters()
        for name, value in (given.parameters or {}).items():
            if name in known:
                yield from _option(name, value)
        for name in ("decoder", *SAMPLING):
            yield from _option(name, getattr(given, name))


def _option(name: str, value: Value | float | str | Sequence[str] | None) -> Iterator[str]:
    """Yield ``--name value``, ``--name`` or ``--no-name``; ``--name`` with each of several values; nothing for None."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        yield f"--{option}" if value else f"--no-{option}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from (f"--{option}", each)
    elif value is not None:
        yield from (f"--{option}", str(value))


def found_anywhere(model: str) -> str:
    """Return a name that means the same model in every folder: for an existing file or folder, its absolute path.

    A saved conversation may be continued from another folder, where a relative name would mean another model, or one
    of the hub. A name that starts with ~ is valid everywhere and stays.

    Raises:
        AddressRefused: it begins like the address of a server, and is none.
    """
    if is_server(model):
        server, name = parted(model)
        return named(ServerAddress.of(server or "").api, name)
    if model == catalog.BUNDLED or model.startswith("~"):
        return model
    try:
        return str(Path(model).absolute()) if Path(model).exists() else model
    except (OSError, ValueError):  # thousands of characters long, or not a path at all
        return model
