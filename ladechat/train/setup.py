"""Combines a loaded model and the options into the objects that training needs."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.memory import free_memory
from ladechat.model.trained import fingerprint
from ladechat.train.chunks import Chunks, Text, text_fingerprint
from ladechat.train.estimate import Needs, Shape, check_room, in_time, needs
from ladechat.train.features import Base
from ladechat.train.options import Recipe, TrainOptions, TrainRefused, beside
from ladechat.train.progress import TrainingReport
from ladechat.train.text import TextFile, Writer, read_text, up_to, write_text
from ladechat.train.trainer import Training

STEPS_MEASURED = 3
TOKENS_MEASURED = 32
"""The tokens written for each text of one batch, to measure the model's speed."""
RUNS_OF_A_SWEEP = 3
"""For each layer: cross-entropy, the same without sight of earlier rows, divergence."""


@dataclass(frozen=True)
class Setup:
    """What a training needs: `options` have the layers filled in, `fingerprint` is that of the model."""

    loaded: LoadedModel
    base: Base
    options: TrainOptions
    fingerprint: str

    @property
    def model_name(self) -> str:
        """The model's name for files that are passed on: of a folder only its name."""
        folder = Path(self.options.model).expanduser()
        return folder.resolve().name if folder.exists() else self.loaded.name

    def recipe(self, texts: Sequence[Text]) -> Recipe:
        """Return the recipe of a training on these texts."""
        return Recipe.of(self.options, self.fingerprint, text_fingerprint(texts))

    def chunks(self, texts: Sequence[Text]) -> Chunks:
        """Return the texts cut into chunks."""
        options = self.options
        return Chunks(texts, options.length, options.ahead, options.anchors)

    def texts(self, report: TrainingReport) -> list[Text]:
        """Read the text, or let the model write the part that is missing."""
        options, tokens = self.options, self.options.tokens
        if options.text is not None:
            return read_text(options.text, self.loaded.tokenizer, tokens)
        made_by = {
            "base": self.fingerprint,
            "seed": options.seed,
            "temperature": options.temperature,
            "longest": self._longest,
        }
        file = TextFile(beside(options.out, ".text.jsonl"), made_by, self.loaded.vocabulary)
        if file.tokens < tokens:
            report.begin("writing text", tokens, file.tokens)
            write_text(file, self._writer(self._longest), tokens, report.reach)
        return list(up_to(file.texts, tokens))

    def needs(self) -> Needs:
        """Return what the training needs; for a sweep, the largest of its trainings."""
        config: Any = self.loaded.model.config.get_text_config(decoder=True)
        shape = replace(Shape.of(config), parameters=self.loaded.parameters)
        return needs(shape, self.largest, self.base.dtype.itemsize)

    @property
    def largest(self) -> Recipe:
        """The recipe; for a sweep, that of the training with the most memory."""
        return Recipe.of(self.options.largest(), self.fingerprint)

    def check_room(self) -> None:
        """Refuse a training that does not fit, see `ladechat.train.estimate.check_room`."""
        tokens = 0 if self.options.text is not None else self.options.tokens
        disk = shutil.disk_usage(self.options.out.parent).free
        check_room(self.needs(), tokens, free_memory(self.base.device), disk, str(self.base.device))

    def time_line(self) -> str:
        """Measure a few steps and a few tokens, and return a sentence with the expected time."""
        recipe, options = self.largest, self.options
        tokens = torch.randint(self.loaded.vocabulary, (2 * recipe.batch, recipe.length)).tolist()
        training = Training(self.base, recipe, self.chunks([Text(chunk) for chunk in tokens]))
        training.advance()  # the first step also warms up
        step = min(_timed(training.advance) for _ in range(STEPS_MEASURED - 1))
        runs = RUNS_OF_A_SWEEP * len(options.layers or ()) if options.method == "sweep" else 1
        steps = step * options.steps * runs
        line = f"Training takes about {in_time(steps)}: {options.steps * runs:,} steps of {step:.2f} s"
        if options.text is not None:
            return f"{line}."
        found: list[Text] = []
        taken = _timed(lambda: found.extend(self._writer(TOKENS_MEASURED).batch(0)))
        written = sum(len(text.tokens) for text in found)
        if not written:
            return f"{line}; how fast the model writes cannot be told."
        rate = written / taken
        writing = f"{options.tokens:,} tokens at {rate:,.0f} a second"
        return f"{line}; before it, writing the text takes up to about {in_time(options.tokens / rate)}: {writing}."

    @property
    def _longest(self) -> int:
        """The tokens of an answer: two chunks, so that most chunks come from the middle of an answer."""
        return 2 * self.options.length

    def _writer(self, longest: int) -> Writer:
        return Writer(self.loaded, longest, self.options.temperature, self.options.seed)


def prepare(loaded: LoadedModel, options: TrainOptions) -> Setup:
    """Freeze the model, and check whether training is possible for it.

    Raises:
        TrainRefused: its layers cannot be called one by one, or the options do not fit it.
    """
    runner, loop = loaded.runner, loaded.runner.loop
    if loop is None:
        why = runner.capabilities.single_token or runner.capabilities.logits_only
        raise TrainRefused(f"Nothing can be trained for this model: {why}")
    if options.length > loaded.context_length:
        raise TrainRefused(
            f"The model's context has {loaded.context_length:,} tokens; give --length no more than that."
        )
    model = loaded.model
    model.requires_grad_(False)
    base = Base(
        loop=loop,
        windows=loop.windows,
        adds_masks=model.config._attn_implementation == "eager",
        dtype=model.dtype,
        device=model.device,
    )
    return Setup(loaded, base, options.with_layers(loop.depth), fingerprint(loaded.folder))


def _timed(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes, including its work on a GPU."""
    begun = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun
