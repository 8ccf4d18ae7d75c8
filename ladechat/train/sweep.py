"""`ladechat train sweep`: finds the layer where pseudo rows should enter, by a short training at each layer.

For each layer it measures how often the guess of each position is right, and how similar pseudo hidden states are to
the real ones of the same positions, layer by layer above; and both again where rows do not see earlier rows, and where
the loss is the divergence from the model's distributions instead of cross-entropy. Wu et al. 2024 (arXiv 2404.12022)
report all these figures.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cosine_similarity

from ladechat.bench.command import tables_console
from ladechat.files import DAMAGE, read_file, replace_file
from ladechat.terminal import say
from ladechat.train.chunks import Batch, Chunks
from ladechat.train.features import Base, pseudo_pass, read
from ladechat.train.options import Recipe, TrainOptions, TrainRefused, beside
from ladechat.train.progress import TrainingReport, report
from ladechat.train.setup import Setup
from ladechat.train.svg import Curve, chart
from ladechat.train.trainer import Training

FORMAT = "ladechat-sweep-1"


@dataclass(frozen=True, slots=True)
class Variant:
    """A way of training that is compared at each layer."""

    name: str
    loss: str
    sight: bool
    dashes: str


VARIANTS = (
    Variant("cross-entropy", "ce", True, ""),
    Variant("without sight of earlier rows", "ce", False, "6 3"),
    Variant("divergence", "kl", True, "2 3"),
)


def sweep(setup: Setup) -> int:
    """Train at each layer; write and print the results. Results that are in the file already are not computed again.

    Raises:
        TrainRefused: the file belongs to something else.
        OSError: it cannot be written.
    """
    options = setup.options
    setup.check_room()
    say(setup.time_line())
    with report() as shown:
        texts = setup.texts(shown)
        chunks = setup.chunks(texts)
        about = {
            "model": setup.model_name,
            **{name: value for name, value in asdict(setup.recipe(texts)).items() if name in ABOUT},
        }
        found = _begun(options, about)
        done = {(run["layer"], run["variant"]) for run in found["runs"]}
        for layer in options.layers or ():
            for variant in VARIANTS:
                if (layer, variant.name) not in done:
                    found["runs"].append(_run(setup, chunks, layer, variant, str(about["text"]), shown))
                    replace_file(options.out, json.dumps(found, indent=1).encode())
    plot = beside(options.out, ".svg")
    replace_file(plot, _chart(found, options.ahead).encode())
    _show(found, options.ahead, tables_console())
    print(f"{options.out}, {plot}")
    return 0


ABOUT = ("base", "steps", "batch", "anchors", "length", "rate", "seed", "text")
"""Fields that are the same for all trainings of a sweep."""


def similarity(base: Base, recipe: Recipe, training: Training, batches: list[Batch]) -> list[list[float]]:
    """Return the mean cosine of pseudo and real states of a position, (k, layers from the transfer layer upwards)."""
    maps = training.student.maps()
    sums: list[list[float]] = [[0.0] * (base.loop.depth - recipe.layers[0]) for _ in recipe.layers]
    anchors = sum(batch.anchors.numel() for batch in batches)
    with torch.no_grad():
        for batch in (one.to(base.device) for one in batches):
            context = read(base, batch.tokens, recipe.layers, keep_all=True)
            done = pseudo_pass(base, context, batch, maps, recipe.sight, keep_all=True)  # type: ignore[arg-type]
            for place, layer in enumerate(sorted(done.after)):
                real = batch.at(context.after[layer], range(1, recipe.ahead + 1))
                alike = cosine_similarity(done.after[layer].float(), real.float(), -1).sum(-1).tolist()
                for step, value in enumerate(alike):
                    sums[step][place] += value
    return [[value / anchors for value in row] for row in sums]


def _run(
    setup: Setup, chunks: Chunks, layer: int, variant: Variant, text: str, shown: TrainingReport
) -> dict[str, Any]:
    """Run one short training, and return its results."""
    options = replace(setup.options, method="transfer", loss=variant.loss, layers=(layer,) * setup.options.ahead)
    recipe = replace(Recipe.of(options, setup.fingerprint, text), sight=variant.sight)
    training = Training(setup.base, recipe, chunks)
    shown.begin(f"layer {layer}, {variant.name}", recipe.steps)
    while training.step < recipe.steps:
        loss = training.advance()
        shown.step(training.step, loss)
    found = training.accuracy()
    shown.accuracy(training.step, found)
    return {
        "layer": layer,
        "variant": variant.name,
        "top1": found.top1,
        "top5": found.top5,
        "loss": found.loss,
        "anchors": found.anchors,
        "similarity": similarity(setup.base, recipe, training, chunks.evaluation(recipe.batch)),
    }


def _begun(options: TrainOptions, about: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the file, or an empty one if there is none.

    Raises:
        TrainRefused: it belongs to another sweep.
    """
    path = options.out
    if not path.exists():
        return {"format": FORMAT, "about": about, "runs": []}
    try:
        found = json.loads(read_file(path))
        same = found["format"] == FORMAT and found["about"] == about and isinstance(found["runs"], list)
    except (*DAMAGE, OSError):
        same = False
    if not same:
        raise TrainRefused(f"{path} is of something else than this sweep; remove it, or give --out another name.")
    return dict(found)


def _rows(found: dict[str, Any], variant: Variant) -> list[dict[str, Any]]:
    """Return the runs of a variant, by layer."""
    return sorted((run for run in found["runs"] if run["variant"] == variant.name), key=lambda run: int(run["layer"]))


def _show(found: dict[str, Any], ahead: int, console: Console) -> None:
    """Print the tables of accuracy and similarity by layer."""
    positions = [f"t+{place}" for place in range(2, ahead + 2)]
    columns = [f"{position} {variant.name}" for variant in VARIANTS for position in positions]
    table = Table(
        "layer", *columns, title="Top-1 on held-out text, by the layer where rows enter", title_justify="left"
    )
    for column in table.columns:
        column.justify = "right"
    by_variant = [{run["layer"]: run for run in _rows(found, variant)} for variant in VARIANTS]
    for layer in by_variant[0]:
        table.add_row(str(layer), *(f"{value:.3f}" for runs in by_variant for value in runs[layer]["top1"]))
    console.print(table)
    alike = Table(
        "layer", *positions, title="Cosine of pseudo and real states after the last layer", title_justify="left"
    )
    for run in _rows(found, VARIANTS[0]):
        alike.add_row(str(run["layer"]), *(f"{row[-1]:.3f}" for row in run["similarity"]))
    console.print(alike)


def _chart(found: dict[str, Any], ahead: int) -> str:
    lines = [
        Curve(
            f"t+{step + 2} {variant.name}",
            [(float(run["layer"]), float(run["top1"][step])) for run in _rows(found, variant)],
            step,
            variant.dashes,
        )
        for step in range(ahead)
        for variant in VARIANTS
    ]
    return chart(f"Top-1 by transfer layer: {found['about']['model']}", "layer", "top-1", lines)
