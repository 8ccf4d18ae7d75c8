"""Our proposer for vLLM, which also writes down how long it takes: `benchmarks.served` has vLLM load it."""

import json
import os
import time
from pathlib import Path
from typing import Any

from ladechat.plugins.vllm import Proposer, SharingProposer

TIMES = "LADECHAT_PROPOSER_TIMES"
"""The variable that names the file; a line a call: its rows, its seconds, and those of the step before it."""


class TimedProposer(Proposer):
    """Writes a line after each call."""

    def __init__(self, vllm_config: Any) -> None:
        super().__init__(vllm_config)
        self._file = Path(os.environ[TIMES]).open("a", encoding="utf-8")  # noqa: SIM115 – as long as vLLM runs
        self._ended = time.perf_counter()

    def propose(self, *arguments: Any, **named: Any) -> list[list[int]]:
        began = time.perf_counter()
        drafts = super().propose(*arguments, **named)
        ended = time.perf_counter()
        line = {"rows": len(drafts), "seconds": ended - began, "step": began - self._ended}
        print(json.dumps(line), file=self._file, flush=True)
        self._ended = time.perf_counter()
        return drafts


class TimedSharingProposer(TimedProposer, SharingProposer):
    """The same of the proposer whose requests share answers."""
