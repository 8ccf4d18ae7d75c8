"""Estimates the cost of a training: memory and disk from shapes alone, time from a few measured steps."""

from dataclasses import dataclass
from typing import Any

from ladechat.model.checkpoint.files import in_words
from ladechat.train.options import Recipe, TrainRefused, listed
from ladechat.train.students import ROWS_AT_ONCE

BYTES_PER_LEARNT = 16
"""A trained number, its gradient and two averages, in float32."""
BYTES_PER_STORED = 12
"""In a checkpoint: the number and two averages."""
BYTES_PER_TOKEN_OF_TEXT = 8
"""In a text file: digits and a comma."""
REFERENCE_TERAFLOPS = 100
"""Per second: the order of magnitude of training cards in 16 bits, allowing for some loss."""
SPARE = 1.2
"""The factor for torch's overhead: buffers of kernels, freed memory that it caches."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model."""

    width: int  # d, the width of hidden states
    depth: int  # the number of decoder layers
    heads: int  # the number of query heads
    key_width: int  # the numbers in a token's keys, and in its values, in one layer
    inner_width: int  # the width of the feed-forward part
    vocabulary: int  # the number of tokens
    parameters: int  # those of the whole model
    layer_parameters: int  # those of one decoder layer

    @classmethod
    def of(cls, config: Any) -> "Shape":
        """Return the sizes in config.json. If it has no feed-forward width, that is four times d.

        Raises:
            TrainRefused: it lacks one of the others.
        """
        names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
        sizes: list[Any] = [getattr(config, name, None) for name in names]
        missing = [name for name, size in zip(names, sizes, strict=True) if not isinstance(size, int) or size < 1]
        if missing:
            raise TrainRefused(
                f"The config.json of the model does not say its {missing[0]}, so nothing can be estimated."
            )
        width, depth, heads, vocabulary = sizes
        head = getattr(config, "head_dim", None) or width // heads
        keys = head * (getattr(config, "num_key_value_heads", None) or heads)
        inner = getattr(config, "intermediate_size", None) or 4 * width
        layer = 2 * width * heads * head + 2 * width * keys + 3 * width * inner + 2 * width
        tied = getattr(config, "tie_word_embeddings", False)
        parameters = depth * layer + (1 if tied else 2) * vocabulary * width + width
        return cls(width, depth, heads, keys, inner, vocabulary, parameters, layer)


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory and disk space that a training needs, in bytes."""

    model: int  # the model's weights
    learnt: int  # maps or heads, with gradients and averages
    stored: int  # the states stored for the text of a step
    rows: int  # the states of trained rows, stored for their gradients
    logits: int  # the logits of these rows, with their gradients
    disk: int  # the files, without the text

    @property
    def beyond_model(self) -> int:
        """The memory that training needs in addition to the loaded model."""
        return int(SPARE * (self.learnt + self.stored + self.rows + self.logits))


def needs(shape: Shape, recipe: Recipe, itemsize: int) -> Needs:
    """Estimate the memory and disk space of a training from shapes alone; a number has `itemsize` bytes."""
    d, ahead = shape.width, recipe.ahead
    learnt = ahead * d * d + (ahead * d if recipe.method == "medusa" else 0)
    tokens = recipe.batch * recipe.length
    anchors = recipe.batch * min(recipe.anchors, recipe.length)
    # One layer at a time: states, queries, keys, values, the feed-forward part, the attention scores.
    passing = tokens * (4 * d + 2 * shape.key_width + 3 * shape.inner_width) + tokens * recipe.length * shape.heads
    if recipe.method == "medusa":
        stored, rows, at_once = 2 * tokens * d, 4 * ahead * ROWS_AT_ONCE * d, min(anchors, ROWS_AT_ONCE) * ahead
    else:
        above = shape.depth - recipe.layers[0]
        pseudo = anchors * ahead
        seen = recipe.length + recipe.anchors * ahead
        stored = 2 * tokens * shape.key_width * above + tokens * d * (len(set(recipe.layers)) + 1)
        of_layer = 8 * d + 4 * shape.inner_width + 2 * shape.key_width
        keys = 2 * recipe.batch * seen * shape.heads * (d // shape.heads)  # repeated for each query head
        rows = above * (pseudo * of_layer + keys + 2 * pseudo * seen * shape.heads)
        at_once = pseudo
    logits = at_once * shape.vocabulary * (8 if recipe.loss == "kl" else 4) * 4
    return Needs(
        model=shape.parameters * itemsize,
        learnt=BYTES_PER_LEARNT * learnt,
        stored=(stored + passing) * itemsize,
        rows=rows * itemsize,
        logits=logits,
        disk=(2 * BYTES_PER_STORED + 2) * learnt,  # a checkpoint and its replacement, and the result
    )


def operations(shape: Shape, recipe: Recipe) -> float:
    """Return the floating-point operations of a step, multiplications and additions, from shapes alone.

    Each weight takes two of them for a token of the text. Trained rows take as many on their way up, and again for
    their gradients; the weights themselves have none.
    """
    d, ahead, outputs = shape.width, recipe.ahead, shape.vocabulary * shape.width
    tokens, anchors = recipe.batch * recipe.length, recipe.batch * min(recipe.anchors, recipe.length)
    rows = anchors * ahead
    of_layer = shape.layer_parameters
    # Attention scores and weighted values: four operations for each number of a head and pair of row and visible row.
    reading = shape.depth * tokens * (2 * of_layer + 4 * recipe.length * d)
    learning = rows * (6 * d * d + 4 * outputs)
    if recipe.method == "medusa":
        return reading + learning
    seen = recipe.length + ahead * recipe.anchors
    above = sum(shape.depth - layer for layer in recipe.layers) * anchors
    return reading + learning + above * (4 * of_layer + 12 * seen * d)


def check_room(need: Needs, text_tokens: int, free_memory: int | None, free_disk: int, device: str) -> None:
    """Refuse a training that does not fit, of a model that is loaded, with so many tokens of text still to be written.
    Free memory and disk space are in bytes; None if unknown.

    Raises:
        TrainRefused: not enough memory or disk space; the message has the figures, and what to do.
    """
    if free_memory is not None and need.beyond_model > free_memory:
        raise TrainRefused(
            f"Training needs {in_words(need.beyond_model)} of memory besides the model, and {device} has "
            f"{in_words(free_memory)} free; give smaller --batch, --anchors or --length."
        )
    disk = need.disk + text_tokens * BYTES_PER_TOKEN_OF_TEXT
    if disk > free_disk:
        raise TrainRefused(
            f"Training writes up to {in_words(disk)} beside --out, and {in_words(free_disk)} are free there; make "
            "room, or give --out a name on another disk."
        )


def in_time(seconds: float) -> str:
    """Return a duration in words: 1 h 20 min, 4 min, 30 s."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def memory_lines(need: Needs, recipe: Recipe, device: str) -> list[str]:
    """Return the estimate of memory and disk space, for users."""
    where = f"layers {listed(recipe.layers)}" if recipe.method == "transfer" else f"{recipe.ahead} heads"
    parts = (("what learns", need.learnt), ("text", need.stored), ("rows", need.rows), ("logits", need.logits))
    in_parts = ", ".join(f"{name} {in_words(count)}" for name, count in parts)
    memory = f"the model {in_words(need.model)}, training {in_words(need.beyond_model)}"
    return [
        f"{recipe.method}, {where}, {recipe.batch} chunks of {recipe.length} tokens a step, {recipe.anchors} anchors",
        f"  memory on {device}: {memory} ({in_parts}, and a fifth to spare)",
        f"  disk beside --out: {in_words(need.disk)}, besides the text",
    ]


def work_line(shape: Shape, recipe: Recipe) -> str:
    """Return the estimate of the computation, for users who know the speed of a device."""
    each = operations(shape, recipe)
    seconds = recipe.steps * each / (REFERENCE_TERAFLOPS * 1e12)
    return (
        f"  work: {each / 1e12:,.3g} TFLOP a step; {recipe.steps:,} steps take {in_time(seconds)} at "
        f"{REFERENCE_TERAFLOPS} TFLOP a second, besides writing the text"
    )
