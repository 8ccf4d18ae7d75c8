"""What scenes say of a pass."""

import re

from ladechat import registry
from ladechat.lessons.numbers import _slots
from ladechat.lessons.one_token import _first_tokens
from ladechat.lessons.scene import Run
from ladechat.widgets.panels.speed_panel import SpeedPanel
from tests.decoder.table_runner import random_table
from tests.widgets.hosting import Host, lines
from tests.widgets.sample_steps import plain_step
from tests.widgets.test_pass_slots import passes


def test_what_is_said_of_the_slots_of_a_pass_adds_up() -> None:
    shared = 0
    for w, n, g in [(5, 3, 0), (5, 3, 5), (3, 5, 4)]:
        runner = random_table(9, seed=9)
        for _, step in passes(runner, registry.lookahead(runner, w, n, g)):
            told = _slots(Run(turn=1, steps=[step]))
            found = re.search(r"has (\d+) places .*?(?:takes (\d+), .*)?pool took (\d+) more", told)
            assert found, told
            places, takes, more = (None if group is None else int(group) for group in found.groups())
            assert more is not None and 0 <= more <= (n - 1) * g, "the last token, the window, and the pool's guesses"
            shared += takes is not None and takes < (places or 0)
    assert shared, "places that begin alike share a slot"


async def test_the_time_of_a_pass_is_that_of_the_panel_beside_the_scene() -> None:
    step, panel = plain_step(), SpeedPanel()
    panel.show_step(step)
    async with Host(panel, 50, 8).run_test():
        time = re.search(r"[0-9.]+ ms", lines(panel)[-1])
    assert time is not None and f"took {time[0]}." in _first_tokens(Run(turn=1, steps=[step]))
