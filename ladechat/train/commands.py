"""The commands `ladechat train …`: their options are the fields of `TrainOptions`. `train.command` runs them."""

from collections.abc import Collection
from dataclasses import fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ladechat.command_line import command_group
from ladechat.refusing import fail
from ladechat.train.options import TrainOptions

app = command_group(
    "Train what hidden transfer or Medusa adds to a model, which itself stays as it is (docs/hidden-transfer.md)."
)

OutJson = Annotated[
    Path, typer.Option(metavar="FILE.json", help="Where the figures go; text and a picture lie beside it.")
]
Layers = Annotated[
    str | None,
    typer.Option(
        metavar="0,1,…",
        help="Before which layer the row of each token ahead enters.",
        show_default="half of the way up",
    ),
]
LayersToTry = Annotated[str | None, typer.Option(metavar="0,1,…", help="Which layers to try.", show_default="all")]
SweepSteps = Annotated[int, typer.Option(help="Updates of each of the three trainings at each layer.")]

KINDS = get_type_hints(TrainOptions, include_extras=True) | {"layers": Layers}
DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(TrainOptions)}
DEFAULTS |= {"out": Parameter.empty, "model": "demo", "device": "auto", "dtype": "auto"}
ORDER = ("out", *(name for name in KINDS if name not in ("method", "out")))


def _add(method: str, help: str, kinds: dict[str, Any], left_out: Collection[str] = (), **defaults: Any) -> None:
    """Add the command of a method, with the options of `TrainOptions` but those that are left out. `kinds` and
    `defaults` are the types and defaults that are others than there, by the name of the option.
    """

    def called(**given: Any) -> None:
        from ladechat.train.command import run

        given |= {name: path.expanduser() for name, path in given.items() if isinstance(path, Path)}
        given["layers"] = _numbers(given.get("layers"), sorted_once=method == "sweep")
        raise typer.Exit(run(TrainOptions(method=method, **given)))

    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation={**KINDS, **kinds}[name])
        for name, default in ((name, {**DEFAULTS, **defaults}[name]) for name in ORDER if name not in left_out)
    ]
    called.__signature__ = Signature(options)  # type: ignore[attr-defined]  # where typer looks
    called.__annotations__ = {one.name: one.annotation for one in options}
    app.command(method, help=help)(called)


GOES_ON = "The same command again goes on where it was stopped."
_add("transfer", f"Train the maps of hidden transfer. {GOES_ON}", {})
_add("medusa", f"Train the heads of Medusa-1. {GOES_ON}", {}, ("layers",))
_add(
    "sweep",
    "Find the layer where pseudo rows should enter: a short training at each, with accuracy and similarity.",
    {"out": OutJson, "layers": LayersToTry, "steps": SweepSteps},
    ("loss", "minutes"),
    steps=100,
)


def _numbers(text: str | None, *, sorted_once: bool) -> tuple[int, ...] | None:
    """Return the layers in an argument such as 2,2,3."""
    if text is None:
        return None
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        fail(f"{text[:80]!r} are no layers: whole numbers with commas between, as in --layers 2,2,3.")
    return tuple(sorted(set(numbers))) if sorted_once else numbers
