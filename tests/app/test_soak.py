"""Hours of chatting in the app: its own process takes no more memory, descriptors, tasks and timers than at first.

`make test-full` chats for some minutes; `make soak` for an hour, or for as long as `LADECHAT_SOAK_MINUTES` says.
"""

import subprocess
import sys
from pathlib import Path

import msgspec

from tests.app.chatting import Seen
from tests.engine.wire import ROOT
from tests.growth import added, growth_in_an_hour, most_growth_in_an_hour, said_of
from tests.soaking import MINUTES, RUNS_LONG

HEAPS = 3
"""Times the growth that is a leak: what heaps that are in pieces may add in the first hour."""

pytestmark = RUNS_LONG


def test_hours_of_chatting_take_no_more_of_the_app(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.app.chatting", str(MINUTES), str(tmp_path)]
    with (tmp_path / "said").open("w+") as said:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=said, cwd=ROOT, check=False)
        said.seek(0)
        assert process.returncode == 0, said.read()
    watched = [msgspec.json.decode(line, type=Seen) for line in process.stdout.splitlines()]
    in_use = [(one.seconds, one.in_use) for one in watched]
    private = [(one.seconds, one.private) for one in watched]
    print(f"app: {len(watched)} turns, in use {said_of(in_use)}; private {said_of(private)}; {watched[-1]}")
    assert growth_in_an_hour(in_use) <= most_growth_in_an_hour(in_use), said_of(in_use)
    assert growth_in_an_hour(private) <= HEAPS * most_growth_in_an_hour(private), said_of(private)
    for counted in ("descriptors", "tasks", "timers"):
        counts = [(one.seconds, getattr(one, counted)) for one in watched]
        assert added(counts) < 2, (counted, counts)
