"""The trial of a GGUF file in a process of its own, before the file is used: does it crash, and how exact is it?

Run as ``python -P -m ladechat.model.llama_cpp.trial FILE THREADS WAY``; it prints a `Trial` as JSON. What a damaged
file does to the library (an assertion that fails, memory without end) ends that process alone.
"""

import json
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ladechat.model.llama_cpp.context import SPARE, Context
from ladechat.model.llama_cpp.model import FileRefused, PackedModel, bytes_of

CACHED = 5
"""The number of cached tokens before a compared pass."""

SIZES = (2, 3, 4, 7, 8, 16)
"""The slots of the passes that are compared. Kernels for many rows begin at powers of two."""

MOST_SLOTS, LEAST, SECONDS = SIZES[-1], 4, 4.0
"""The most slots of a pass that is compared; and how many are even where their tokens, read alone, take longer than so
many seconds of processor time, of all threads."""
STEP = 977
"""The step between the ids of the tokens, modulo the vocabulary: no special ones, which have the lowest ids."""

MEMORY_FACTOR = 2
"""A file that makes the library ask for more than twice its size and `MEMORY` beside it is damaged."""
MEMORY = 8 << 30
MOST_SAID = 400

FAST, EXACT = "fast", "exact"
"""The ways in which passes are computed: with weights rearranged for the processor, or as they are stored."""


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial.

    Attributes:
        refused: why the file cannot be used, as the end of a sentence; None if it can.
        slots: the most slots of a pass in which each gets the logits of a pass of its own, bit for bit.
        moved: by how much logits differ in passes of more slots, up to `MOST_SLOTS`; 0 if none does.
    """

    refused: str | None = None
    slots: int = MOST_SLOTS
    moved: float = 0.0


def run_trial(path: Path, threads: int, way: str, gpu: bool) -> Trial:
    """Try a file in a process of its own.

    Raises:
        RuntimeError: the process failed for a reason of its own.
    """
    module = [sys.executable, "-P", "-m", __name__]
    command = [*module, str(path), str(threads), way, *(["gpu"] if gpu else [])]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode > 0:
        raise RuntimeError(f"The trial of a GGUF file ended with: {done.stderr.strip()[-MOST_SAID:]}")
    if done.returncode == 0:
        return Trial(**json.loads(done.stdout.splitlines()[-1]))
    said = [line for line in done.stderr.splitlines() if "GGML_ASSERT" in line]
    why = said[-1].rpartition("/")[2] if said else signal.Signals(-done.returncode).name
    return Trial(refused=f"llama.cpp breaks down on it ({why})")


def try_file(path: Path, threads: int, way: str, gpu: bool) -> Trial:
    """Try a file in this process."""
    try:
        model = PackedModel(path, repacked=way == FAST, gpu=gpu)
        return compare(model, threads)
    except FileRefused as error:
        return Trial(refused=str(error) or "llama.cpp gives no reason")
    except MemoryError as error:
        return Trial(refused=str(error) or "there is not enough memory")


def compare(model: PackedModel, threads: int) -> Trial:
    """Compare the logits of passes of several slots with those of passes of one."""
    if not model.writes_text:
        return Trial(refused=f"it is of type {model.architecture!r}, which continues no text")
    if not model.vocabulary:
        return Trial(refused="it has no vocabulary")
    text = np.array([(500 + STEP * n) % model.vocabulary for n in range(CACHED + MOST_SLOTS + 1)], np.int32)
    places = np.arange(len(text), dtype=np.int32)
    context = Context(model, 2 * len(text) + MOST_SLOTS, MOST_SLOTS, threads)
    context.decode(text[:CACHED], places[:CACHED], outputs=False)
    alone = _one_by_one(context, text, places)
    if not np.isfinite(alone.max(-1)).all():
        return Trial(refused="it gives logits that are not numbers")
    if model.has_state:
        return Trial()
    exact, moved = 1, 0.0
    for size in (size for size in SIZES if size < len(alone)):
        context.truncate(CACHED)
        found = context.decode(text[CACHED:][:size], places[CACHED:][:size])
        moved = max(moved, _difference(found, alone[:size]))
        exact = size if not moved else exact
    if exact > 2:
        off = _branch_difference(context, text, alone, min(exact, MOST_SLOTS // 2))
        exact, moved = (1, max(moved, off)) if off else (exact, moved)
    return Trial(slots=exact, moved=moved)


def _one_by_one(context: Context, text: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the (n, vocabulary) logits of tokens read alone: as many as the time allows, but more than `LEAST`."""
    began, rows = time.process_time(), list[NDArray[np.float32]]()
    for token, place in zip(text[CACHED:, None], places[CACHED:, None], strict=True):
        if len(rows) > LEAST and time.process_time() - began > SECONDS:
            break
        rows.append(context.decode(token, place).copy())
    return np.concatenate(rows)


def _branch_difference(context: Context, text: NDArray[np.int32], alone: NDArray[np.float32], size: int) -> float:
    """Return how far logits are off in a tree whose second branch is the text, and after that branch was committed."""
    branch = size // 2
    context.truncate(CACHED)
    context.share_text(2)
    tokens = np.concatenate([text[CACHED:][:1], text[:branch], text[CACHED + 1 :][: size - branch - 1]])
    places = CACHED + np.array([0, *range(1, branch + 1), *range(1, size - branch)], np.int32)
    sequences = np.zeros((size, 2), np.bool_)
    sequences[0] = sequences[1 : branch + 1, 0] = sequences[branch + 1 :, 1] = True
    logits = context.decode(tokens, places.astype(np.int32), sequences)
    own = size - branch
    off = _difference(logits[[0, *range(branch + 1, size)]], alone[:own])
    saved = context.copy(SPARE, CACHED + 1, CACHED + own)
    context.truncate(CACHED + 1)
    context.append(saved)
    after = context.decode(text[CACHED + own :][:1], np.array([CACHED + own], np.int32))
    return max(off, _difference(after, alone[own : own + 1]))


def _difference(logits: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    return float(np.abs(logits - expected).max())


def main() -> None:
    """Print the trial of the file named on the command line."""
    path, threads, way, *gpu = sys.argv[1:]
    if sys.platform == "linux":
        most = MEMORY + MEMORY_FACTOR * bytes_of(Path(path))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(json.dumps(asdict(try_file(Path(path), int(threads), way, bool(gpu)))))


if __name__ == "__main__":
    main()
