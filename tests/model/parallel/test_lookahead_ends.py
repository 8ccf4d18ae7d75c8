"""How several processes that share passes end. In a file of its own: this process can be in one group at a time."""

from pathlib import Path
from typing import NoReturn

import pytest

from ladechat.decoder.step import Limits
from ladechat.model.parallel.workers import Workers
from ladechat.registry import lookahead
from tests.checkpoints import load_on_cpu, save_recurrent
from tests.model.parallel.group import Ended, forked_workers, in_processes
from tests.model.refusals import assert_refused
from tests.tiny import random_model


def test_a_process_that_is_killed_ends_the_answer(tmp_path: Path) -> None:
    with in_processes(random_model(0), tmp_path, 4) as (runner, others):
        steps = lookahead(runner).run([5, 3, 8] * 3, Limits(40))
        next(steps)
        others[1].kill()
        with pytest.raises(Ended):
            list(steps)


def test_a_model_whose_passes_cannot_be_divided_is_refused_with_the_option(tmp_path: Path) -> None:
    def failed(error: Exception) -> NoReturn:
        raise error

    others = Workers(2, True, lambda _: None, failed)
    with forked_workers():
        refused = assert_refused(
            lambda: load_on_cpu(save_recurrent(tmp_path), workers=others), "unsupported_architecture", "recurrent state"
        )
    assert refused.hint == "Leave --lookahead-parallel out."
