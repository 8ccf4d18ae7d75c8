"""Processes that share passes: this one is rank 0, the others are copies of it that run the workers' program."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

import torch
from torch import distributed
from transformers import PreTrainedModel

from ladechat.model.loading.self_check import choose_runner
from ladechat.model.parallel import workers
from ladechat.model.parallel.part import PartRunner
from ladechat.model.parallel.rank0 import LookaheadRank0
from ladechat.model.parallel.shards import join_group, shards_of
from ladechat.model.parallel.workers import Workers
from tests.engine.forked import Child, forked_worker


class Ended(Exception):
    """A pass failed, which ends an engine."""


@contextmanager
def forked_workers() -> Iterator[list[Child]]:
    """Start workers as forks of this process, and list them; at the end this process leaves its process group."""
    children: list[Child] = []

    def start(*command: Any, **streams: Any) -> Child:
        children.append(forked_worker(*command, **streams))
        return children[-1]

    threads = torch.get_num_threads()
    try:
        with patch.object(workers, "subprocess", SimpleNamespace(Popen=start)):
            yield children
    finally:
        torch.set_num_threads(threads)
        if distributed.is_initialized():
            distributed.destroy_process_group()


@contextmanager
def in_processes(
    model: PreTrainedModel, folder: Path, processes: int, context_length: int = 512
) -> Iterator[tuple[LookaheadRank0, list[Child]]]:
    """Rank 0's runner of a model, whose passes so many processes compute together, and the worker processes."""

    def failed(error: Exception) -> NoReturn:
        raise Ended(str(error)) from error

    model.save_pretrained(folder)
    others = Workers(processes, True, lambda _: None, failed)
    devices = [torch.device("cpu")] * processes
    first, *rest = shards_of(folder, "the model", devices, torch.float32, context_length, True)
    with forked_workers() as children:
        torch.set_num_threads(1)
        others.start(rest)
        join_group(first)
        runner = LookaheadRank0(PartRunner(choose_runner(model, context_length), 0, processes), others)
        yield runner, children
        for pipe in others._pipes:
            pipe.close()
