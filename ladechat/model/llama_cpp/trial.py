"""The trial of a GGUF file in a process of its own, before the file is used: does it crash, and how exact is it?

Run as ``python -P -m ladechat.model.llama_cpp.trial QUESTION``, with the arguments of `try_file` as JSON; it prints a
`Trial` as JSON. What a damaged file does to the library (an assertion that fails, memory without end) ends that process
alone.
"""

import json
import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ladechat.model.llama_cpp.cost_of_exactness import cost_of_exactness
from ladechat.model.llama_cpp.exactness import MOST_SLOTS, SECONDS, compare
from ladechat.model.llama_cpp.model import FileRefused, PackedModel, bytes_of

MEMORY_FACTOR = 2
"""A file that makes the library ask for more than twice its size and `MEMORY` beside it is damaged."""
MEMORY = 8 << 30
MOST_SAID = 400

AUTO, EXACT, FAST = "auto", "exact", "fast"
"""What is tried: weights as they are stored, rearranged for the processor, or (auto) how much slower the first are."""


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial.

    Attributes:
        refused: why the file cannot be used, as the end of a sentence; None if it can.
        slots: the most slots of a pass in which each gets the logits of a pass of its own, bit for bit.
        moved: by how much logits differ in larger passes, as far as they were compared.
        complete: whether a trial that is not quick would find no more.
        seconds: the times of the passes that were tried, by their slots.
        cost: the time of exact passes, with that of fast ones as 1; 1 where it was not measured.
    """

    refused: str | None = None
    slots: int = MOST_SLOTS
    moved: float = 0.0
    complete: bool = True
    seconds: dict[int, float] = field(default_factory=dict)
    cost: float = 1.0

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Trial":
        """Return the trial that a saved file holds; JSON has the numbers of slots as strings.

        Raises:
            Exception: the file holds no trial; of many types.
        """
        trial = cls(**{**found, "seconds": {int(slots): float(took) for slots, took in found["seconds"].items()}})
        plausible = all(1e-9 <= figure <= 1e6 for figure in (trial.cost, *trial.seconds.values()))
        if trial.slots not in range(1, MOST_SLOTS + 1) or trial.moved < 0 or not plausible:
            raise ValueError("this is no trial")
        return trial


def run_trial(path: Path, threads: int, way: str, gpu: bool, quick: bool) -> Trial:
    """Try a file in a process of its own; see `try_file` for the arguments.

    Raises:
        RuntimeError: the process failed for a reason of its own.
    """
    question = json.dumps([str(path), threads, way, gpu, quick])
    command = [sys.executable, "-P", "-m", __name__, question]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode > 0:
        raise RuntimeError(f"The trial of a GGUF file ended with: {done.stderr.strip()[-MOST_SAID:]}")
    if done.returncode == 0:
        return Trial.from_json(json.loads(done.stdout.splitlines()[-1]))
    said = [line for line in done.stderr.splitlines() if "GGML_ASSERT" in line]
    why = said[-1].rpartition("/")[2] if said else signal.Signals(-done.returncode).name
    return Trial(refused=f"llama.cpp breaks down on it ({why})")


def try_file(path: Path, threads: int, way: str, gpu: bool, quick: bool) -> Trial:
    """Try a file in this process.

    Args:
        path: the file; of a model in several parts, the first.
        threads: the number of threads that compute.
        way: `AUTO`, `EXACT` or `FAST`.
        gpu: whether a GPU computes, if the library knows one.
        quick: whether fewer passes are compared where they take long.
    """
    try:
        model = PackedModel(path, repacked=way == FAST, gpu=gpu)
        has_state = model.has_state
        found = compare(model, threads, SECONDS if quick else math.inf, all_sizes=way == FAST)
    except FileRefused as error:
        return Trial(refused=str(error) or "llama.cpp gives no reason")
    except MemoryError as error:
        return Trial(refused=str(error) or "there is not enough memory")
    cost = 1.0
    if way == AUTO and not has_state:
        with suppress(FileRefused, MemoryError):  # it cannot be run fast, then
            cost = cost_of_exactness(model, found, path, threads)
    return Trial(None, found.slots, found.moved, found.complete, found.seconds, cost)


def main() -> None:
    """Print the trial that the command line asks for."""
    path, threads, way, gpu, quick = json.loads(sys.argv[1])
    if sys.platform == "linux":
        most = MEMORY + MEMORY_FACTOR * bytes_of(Path(path))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(json.dumps(asdict(try_file(Path(path), threads, way, gpu, quick))), flush=True)
    os._exit(0)  # freeing what it holds would take a tenth of a second


if __name__ == "__main__":
    main()
