"""What an engine is started with, and the command line that says so. An engine may be any command that speaks the
protocol: this module knows how ours is called, `ladechat.session.live` runs whatever it is given.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ladechat import catalog
from ladechat.protocol import Settings, Value


def found_anywhere(model: str) -> str:
    """Return a name that means the same model in every folder: of a folder or a file here, its absolute path.

    A conversation that it answers is gone on with from elsewhere, where the name would mean another model, or one of
    the hub. What begins with ~ is found from everywhere as it is.
    """
    if model == catalog.BUNDLED or model.startswith("~"):
        return model
    try:
        return str(Path(model).absolute()) if Path(model).exists() else model
    except (OSError, ValueError):  # of thousands of characters, or no path at all
        return model


@dataclass(frozen=True)
class EngineOptions:
    """The model, where and how it runs, and the first settings.

    Attributes:
        model: a folder, a GGUF file, a hub id, or demo, the bundled model.
        device: a torch device; "auto" takes a GPU if there is one.
        dtype: a torch number type; "auto" is what is fast on the device.
        quantize: what weights are quantised to while they are read.
        pool: the file that keeps the n-gram pool from session to session.
        maps: files of what was trained for the model, for the decoders that need it.
        layer_search: seconds to search for better layers to skip, before the first answer.
        tensor_parallel: how many GPUs share the model.
        settings: the decoder, those of its parameters that were given, and how tokens are drawn.
    """

    model: str = "demo"
    device: str = "auto"
    dtype: str = "auto"
    quantize: str | None = None
    pool: str | None = None
    maps: tuple[str, ...] = ()
    layer_search: float = 0.0
    tensor_parallel: int = 1
    settings: Settings = field(default_factory=Settings)

    def command(self) -> list[str]:
        """The command line of such an engine, in this Python.

        `-P` keeps the working directory off `sys.path`: in the folder of a model a file named torch.py would be run.
        """
        return [sys.executable, "-P", "-m", "ladechat", "engine", *self.arguments()]

    def arguments(self) -> Iterator[str]:
        """What follows `ladechat engine`."""
        yield from ("--model", self.model, "--device", self.device, "--dtype", self.dtype)
        yield from ("--tensor-parallel", str(self.tensor_parallel))
        yield from _option("quantize", self.quantize)
        yield from _option("pool", self.pool)
        for file in self.maps:
            yield from _option("maps", file)
        yield from _option("layer_search", self.layer_search or None)
        known = catalog.parameters()
        for name, value in self.settings.parameters.items():
            if name in known:
                yield from _option(name, value)
        for name in self.settings.__struct_fields__:
            if name != "parameters":
                yield from _option(name, getattr(self.settings, name))


def _option(name: str, value: Value | float | str | None) -> Iterator[str]:
    """``--name value``, ``--name`` or ``--no-name``; nothing for None."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        yield f"--{option}" if value else f"--no-{option}"
    elif value is not None:
        yield from (f"--{option}", str(value))
