"""The commands `ladechat train …`: their options. `ladechat.train.command` runs them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ladechat.command_line import CommandList
from ladechat.engine_options import Device, Dtype, Model
from ladechat.refusing import fail
from ladechat.train.options import DEFAULT_SWEEP_STEPS, TrainOptions

app = typer.Typer(
    cls=CommandList,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Train what hidden transfer or Medusa adds to a model, which itself stays as it is (docs/hidden-transfer.md).",
)

Out = Annotated[
    Path, typer.Option(metavar="FILE.safetensors", help="Where it goes; text and checkpoint lie beside it.")
]
OutJson = Annotated[
    Path, typer.Option(metavar="FILE.json", help="Where the figures go; text and a picture lie beside it.")
]
Text = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Plain text to train on, or a .text.jsonl of an earlier training; else the model writes it.",
    ),
]
Tokens = Annotated[int, typer.Option(help="How many tokens of text.")]
Layers = Annotated[
    str | None,
    typer.Option(
        metavar="0,1,…",
        help="Before which layer the row of each token ahead enters.",
        show_default="half of the way up",
    ),
]
LayersToTry = Annotated[str | None, typer.Option(metavar="0,1,…", help="Which layers to try.", show_default="all")]
Ahead = Annotated[int, typer.Option(help="How many tokens ahead are guessed.")]
Loss = Annotated[
    str,
    typer.Option(
        metavar="ce|kl", help="ce: cross-entropy with the text; kl: divergence from the model's distributions."
    ),
]
Steps = Annotated[int, typer.Option(help="Updates.")]
SweepSteps = Annotated[int, typer.Option(help="Updates of each of the three trainings at each layer.")]
Batch = Annotated[int, typer.Option(help="Chunks of text in each update.")]
Anchors = Annotated[int, typer.Option(help="Positions of each chunk that are trained on.")]
Length = Annotated[int, typer.Option(help="Tokens of a chunk.")]
Rate = Annotated[float, typer.Option(help="The highest learning rate.")]
Temperature = Annotated[float, typer.Option(help="Of the answers that the model writes; 0 takes the likeliest token.")]
Seed = Annotated[int, typer.Option(help="Where random numbers begin: the same seed, the same training.")]
Minutes = Annotated[float, typer.Option(help="From one checkpoint to the next.")]
Estimate = Annotated[
    bool,
    typer.Option("--estimate", help="Only say what memory and time it would take; config.json is enough for memory."),
]


@app.command()
def transfer(
    out: Out,
    model: Model = "demo",
    device: Device = "auto",
    dtype: Dtype = "auto",
    text: Text = None,
    tokens: Tokens = TrainOptions.tokens,
    layers: Layers = None,
    ahead: Ahead = TrainOptions.ahead,
    loss: Loss = "ce",
    steps: Steps = TrainOptions.steps,
    batch: Batch = TrainOptions.batch,
    anchors: Anchors = TrainOptions.anchors,
    length: Length = TrainOptions.length,
    rate: Rate = TrainOptions.rate,
    temperature: Temperature = TrainOptions.temperature,
    seed: Seed = 0,
    minutes: Minutes = TrainOptions.minutes,
    estimate: Estimate = False,
) -> None:
    """Train the maps of hidden transfer. The same command again goes on where it was stopped."""
    given = locals()
    _run("transfer", {**given, "layers": _numbers(layers)})


@app.command()
def medusa(
    out: Out,
    model: Model = "demo",
    device: Device = "auto",
    dtype: Dtype = "auto",
    text: Text = None,
    tokens: Tokens = TrainOptions.tokens,
    ahead: Ahead = TrainOptions.ahead,
    loss: Loss = "ce",
    steps: Steps = TrainOptions.steps,
    batch: Batch = TrainOptions.batch,
    anchors: Anchors = TrainOptions.anchors,
    length: Length = TrainOptions.length,
    rate: Rate = TrainOptions.rate,
    temperature: Temperature = TrainOptions.temperature,
    seed: Seed = 0,
    minutes: Minutes = TrainOptions.minutes,
    estimate: Estimate = False,
) -> None:
    """Train the heads of Medusa-1. The same command again goes on where it was stopped."""
    _run("medusa", locals())


@app.command()
def sweep(
    out: OutJson,
    model: Model = "demo",
    device: Device = "auto",
    dtype: Dtype = "auto",
    text: Text = None,
    tokens: Tokens = TrainOptions.tokens,
    layers: LayersToTry = None,
    ahead: Ahead = TrainOptions.ahead,
    steps: SweepSteps = DEFAULT_SWEEP_STEPS,
    batch: Batch = TrainOptions.batch,
    anchors: Anchors = TrainOptions.anchors,
    length: Length = TrainOptions.length,
    rate: Rate = TrainOptions.rate,
    temperature: Temperature = TrainOptions.temperature,
    seed: Seed = 0,
    estimate: Estimate = False,
) -> None:
    """Find the layer where pseudo rows should enter: a short training at each, with accuracy and similarity."""
    given = locals()
    numbers = _numbers(layers)
    _run("sweep", {**given, "layers": None if numbers is None else tuple(sorted(set(numbers)))})


def _run(method: str, given: dict[str, Any]) -> None:
    from ladechat.train.command import run

    places = {name: given[name].expanduser() if given[name] else None for name in ("out", "text")}
    raise typer.Exit(run(TrainOptions(**{**given, **places, "method": method})))


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Return the layers in an argument such as 2,2,3."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        fail(f"{text[:80]!r} are no layers: whole numbers with commas between, as in --layers 2,2,3.")
