"""The options of a training, checked as far as possible without a model and torch."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ladechat.engine_options import Device, Dtype, Model
from ladechat.files import open_file

LOSSES = ("ce", "kl")

MOST_AHEAD = 16
MOST_LENGTH = 1 << 20


class TrainRefused(ValueError):
    """A training that is impossible as requested: what, why, and what to do, in one sentence."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides the numbers a training ends with: a checkpoint is resumed only by the same recipe."""

    method: str  # "transfer" or "medusa"
    base: str  # the fingerprint of the model
    layers: tuple[int, ...]  # (k,), the decoder layer before which each pseudo row enters; for Medusa k zeros
    sight: bool  # whether a pseudo row sees the earlier ones of its anchor
    loss: str  # "ce": cross-entropy with the text's next tokens; "kl": divergence from the model's own distributions
    steps: int  # the number of updates
    batch: int  # the chunks in each update
    anchors: int  # the positions of each chunk that are trained on
    length: int  # the tokens of a chunk
    rate: float  # the highest learning rate
    seed: int  # the seed of the order of chunks and the choice of anchors
    text: str  # the fingerprint of the tokens

    @property
    def ahead(self) -> int:
        """k: the number of tokens guessed ahead."""
        return len(self.layers)

    @classmethod
    def of(cls, options: "TrainOptions", base: str = "", text: str = "") -> "Recipe":
        """Return the recipe for options with the layers filled in; `base` and `text` are fingerprints."""
        names = ("method", "loss", "steps", "batch", "anchors", "length", "rate", "seed")
        values: dict[str, Any] = {name: getattr(options, name) for name in names}
        return cls(base=base, layers=options.layers or (), sight=True, text=text, **values)


@dataclass(frozen=True)
class TrainOptions:
    """A training, as requested on the command line; see also `Recipe`. Each field but the first is an option of
    `ladechat train transfer`; `ladechat.train.commands` has what is another for Medusa and for a sweep.
    """

    method: str  # as in `Recipe`, or "sweep"
    model: Model
    device: Device
    dtype: Dtype
    out: Annotated[
        Path, typer.Option(metavar="FILE.safetensors", help="Where it goes; text and checkpoint lie beside it.")
    ]
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Plain text to train on, or a .text.jsonl of an earlier training; else the model writes it.",
        ),
    ] = None
    tokens: Annotated[int, typer.Option(help="How many tokens of text.")] = 200_000
    layers: tuple[int, ...] | None = None  # for a sweep those to try; None: the middle one, for a sweep all
    ahead: Annotated[int, typer.Option(help="How many tokens ahead are guessed.")] = 3
    loss: Annotated[
        str,
        typer.Option(
            metavar="ce|kl", help="ce: cross-entropy with the text; kl: divergence from the model's distributions."
        ),
    ] = "ce"
    steps: Annotated[int, typer.Option(help="Updates.")] = 1000
    batch: Annotated[int, typer.Option(help="Chunks of text in each update.")] = 4
    anchors: Annotated[int, typer.Option(help="Positions of each chunk that are trained on.")] = 32
    length: Annotated[int, typer.Option(help="Tokens of a chunk.")] = 256
    rate: Annotated[float, typer.Option(help="The highest learning rate.")] = 4e-3
    temperature: Annotated[
        float, typer.Option(help="Of the answers that the model writes; 0 takes the likeliest token.")
    ] = 0.0
    seed: Annotated[int, typer.Option(help="Where random numbers begin: the same seed, the same training.")] = 0
    minutes: Annotated[float, typer.Option(help="From one checkpoint to the next.")] = 3.0
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="Only say what memory and time it would take; config.json is enough for memory."
        ),
    ] = False

    def check(self) -> None:
        """Check the options before anything is loaded.

        Raises:
            TrainRefused: an option out of its range, or a file that cannot be read or written.
        """
        wanted = ".json" if self.method == "sweep" else ".safetensors"
        if self.out.suffix != wanted:
            raise TrainRefused(f"--out has to end in {wanted}, which {self.out} does not; give it such a name.")
        if self.loss not in LOSSES:
            raise TrainRefused(f"There is no loss {self.loss!r}; give --loss ce or --loss kl.")
        for option, value, least, most in (
            ("--ahead", self.ahead, 1, MOST_AHEAD),
            ("--length", self.length, 16, MOST_LENGTH),
            ("--tokens", self.tokens, 1, 1 << 53),
            ("--steps", self.steps, 1, 1 << 53),
            ("--batch", self.batch, 1, 1 << 20),
            ("--anchors", self.anchors, 1, MOST_LENGTH),
            ("--seed", self.seed, 0, (1 << 53) - 1),
        ):
            if not least <= value <= most:
                raise TrainRefused(f"{option} has to be between {least} and {most:,}, not {str(value)[:20]}.")
        if not 0 < self.rate < 1:
            raise TrainRefused(
                f"--rate has to be above 0 and below 1, not {self.rate}; the default is {TrainOptions.rate}."
            )
        if not 0 <= self.temperature <= 10:
            raise TrainRefused(f"--temperature has to be between 0 and 10, not {self.temperature}.")
        if not 0 < self.minutes < 1e6:
            raise TrainRefused(f"--minutes has to be above 0, not {self.minutes}.")
        _check_files(self)

    def with_layers(self, depth: int) -> "TrainOptions":
        """Return these options with the layers filled in for a model of this depth.

        Raises:
            TrainRefused: layers that it does not have, or that are not in ascending order.
        """
        if self.method == "medusa":
            return replace(self, layers=(0,) * self.ahead)
        usual = tuple(range(depth)) if self.method == "sweep" else (depth // 2,) * self.ahead
        layers = usual if self.layers is None else self.layers
        wrong = [layer for layer in layers if not 0 <= layer < depth]
        if wrong or not layers:
            raise TrainRefused(f"The model has layers 0 to {depth - 1}, so --layers cannot be {listed(layers)}.")
        if self.method == "transfer" and len(layers) != self.ahead:
            raise TrainRefused(
                f"--layers names {len(layers)} layers for --ahead {self.ahead}; give one for each token ahead."
            )
        if list(layers) != sorted(layers):
            raise TrainRefused(
                f"--layers {listed(layers)} fall; a later pseudo row enters no lower than the one before it."
            )
        return replace(self, layers=layers)

    def largest(self) -> "TrainOptions":
        """Return the options of the training with the most memory: of a sweep, by divergence at its lowest layer."""
        if self.method != "sweep":
            return self
        return replace(self, method="transfer", loss="kl", layers=(min(self.layers or (0,)),) * self.ahead)


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as they are given on the command line: 4,4,4."""
    return ",".join(map(str, numbers))


def beside(out: Path, ending: str) -> Path:
    """Return the file beside `out` with this suffix, for its text, checkpoint or plot."""
    return out.with_name(out.name + ending)


def difference(one: Recipe, other: str) -> str | None:
    """Return the first option that differs between a recipe and another one as JSON; None if none does."""
    own, found = json.loads(json.dumps(asdict(one))), json.loads(other)
    return next((name for name in own if own[name] != found.get(name)), None)


def _check_files(options: TrainOptions) -> None:
    folder = options.out.parent
    if not folder.is_dir():
        raise TrainRefused(
            f"{folder} is no folder, so {options.out.name} cannot be written there; give --out another name."
        )
    if options.out.is_dir():
        raise TrainRefused(f"{options.out} is a folder; give --out the name of a file.")
    if options.text is not None:
        try:
            open_file(options.text).close()
        except OSError as error:
            raise TrainRefused(
                f"{options.text} cannot be read: {error.strerror or error}; give another --text."
            ) from error
