"""The processes of `benchmarks.real`: each implementation has one, all of them live, and one computes at a time."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ladechat.bench.methods import TimedAnswer

PAUSE_SECONDS = 0.1
"""Before each answer: threads of the process that answered last may still be waiting for work, and busily."""


class Process:
    """An implementation in a process of its own (`benchmarks.real_worker`).

    Args:
        implementation: as the worker calls it.
        checkout: the folder that `ladechat` is imported from.
        model: the checkpoint.
        threads: that it computes with.
        decoders: of this checkout, that take part; other implementations take none.
        settings: W, N and G of the one that is set by hand, each time that it takes part.
        python: the interpreter that has what it needs.

    Attributes:
        methods: what can answer.
        eos: the tokens that end an answer, as it understands the checkpoint.
        threads: that it computes with.
        facts: what else it says of itself: the bytes of its weights, a version.

    Raises:
        RuntimeError: it has ended instead of loading the model.
    """

    def __init__(
        self,
        implementation: str,
        checkout: Path,
        model: Path,
        threads: int,
        decoders: Sequence[str] = (),
        settings: Sequence[Sequence[int]] = (),
        python: str = sys.executable,
    ) -> None:
        self._implementation = implementation
        program = str(checkout / "benchmarks" / "real_worker.py")  # an older checkout knows where its own parts lie
        arguments = [implementation, str(model), json.dumps(decoders), json.dumps(settings)]
        self._process = subprocess.Popen(
            [python, "-W", "ignore", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl+C is for this process, which ends the others
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": str(threads)},
        )
        ready = self._read()
        self.methods: list[str] = ready["methods"]
        self.eos: list[int] = ready["eos"]
        self.facts = {name: ready.get(name) for name in ("weight_bytes", "version")}
        self.threads = threads
        if ready["threads"] != threads:
            raise RuntimeError(f"{implementation} computes with {ready['threads']} threads, not {threads}.")

    def answer(self, method: str, prompt: list[int], **limits: Any) -> TimedAnswer:
        """Have a method answer a prompt, beginning with an empty cache. The limits are fields of a request, see
        `benchmarks.real_worker`.
        """
        time.sleep(PAUSE_SECONDS)
        reply = self._ask({"method": method, "prompt": prompt, **limits})
        return TimedAnswer(**{**reply, "tokens": tuple(reply["tokens"])})

    def logits(self, text: list[int]) -> list[float]:
        """(vocabulary,) the logits after a text."""
        found: list[float] = self._ask({"logits": text})["logits"]
        return found

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.terminate()
        self._process.wait()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The process of {self._implementation} has ended; its standard error says why.")
        found: dict[str, Any] = json.loads(line)
        return found
