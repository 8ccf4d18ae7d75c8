"""A process of several that share passes dies. In a file of its own: this process can be in one group at a time."""

from pathlib import Path

import pytest

from ladechat.decoder.step import Limits
from ladechat.registry import lookahead
from tests.model.parallel.group import Ended, in_processes
from tests.tiny import random_model


def test_a_process_that_is_killed_ends_the_answer(tmp_path: Path) -> None:
    with in_processes(random_model(0), tmp_path, 4) as (runner, others):
        steps = lookahead(runner).run([5, 3, 8] * 3, Limits(40))
        next(steps)
        others[1].kill()
        with pytest.raises(Ended):
            list(steps)
